// Forms: the focus of the first field with a problem, and a button that shows a password.

export function focusFirstProblem() {
  document.querySelector('main [aria-invalid=true]')?.focus();
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
