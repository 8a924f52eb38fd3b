// The cart's page.

/** A quantity that is changed is sent at once; the form's own button stays for who has no script. */
export function prepareLine(form) {
  form.elements.quantity.addEventListener('change', () => form.requestSubmit(form.querySelector('[value=set]')));
}
