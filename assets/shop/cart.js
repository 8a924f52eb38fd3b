// The cart page.

/** Waits this many milliseconds for further clicks, so that three clicks on + send one request. */
const SUBMIT_DELAY = 500;

/** Submits a changed quantity automatically. The form's own button is for visitors without JavaScript. */
export function submitOnChange(form) {
  let timer;
  form.elements.quantity.addEventListener('change', () => {
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(form.querySelector('[value=set]')), SUBMIT_DELAY);
  });
}
