// The cart's page.

/** Somebody who presses + three times is sent once. */
const REST = 500;

/** A quantity that is changed is sent by itself; the form's own button stays for who has no script. */
export function prepareLine(form) {
  let timer;
  form.elements.quantity.addEventListener('change', () => {
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(form.querySelector('[value=set]')), REST);
  });
}
