// Forms: the focus of the first field with a problem, a double click, and a button that shows a password.

/** Milliseconds. */
const RESEND_AFTER = 5_000;

export function focusFirstProblem() {
  document.querySelector('main [aria-invalid=true]')?.focus();
}

/** Ignores clicks on the button while the browser sends the form. After some seconds they count again: the visitor may have stopped it. */
export function sendOnce(form) {
  let sent = -Infinity;
  form.addEventListener('submit', (event) => {
    if (event.timeStamp - sent < RESEND_AFTER) event.preventDefault();
    else sent = event.timeStamp;
  });
  // A page from the back/forward cache sends its form again.
  window.addEventListener('pageshow', () => { sent = -Infinity; });
}

export function enableReveal(button) {
  const input = button.parentElement.querySelector('input');
  button.addEventListener('click', () => {
    const isShown = input.type === 'text';
    input.type = isShown ? 'password' : 'text';
    button.ariaPressed = String(!isShown);
    button.textContent = isShown ? 'Show password' : 'Hide password';
  });
}
