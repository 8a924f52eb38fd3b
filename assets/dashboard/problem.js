// The problem of a field.

/** Shows the problem of a field beside it. An empty `problem` clears it, and so does a change of the field. */
export function showProblem(field, place, problem) {
  place.textContent = problem;
  if (problem) {
    field.setAttribute('aria-invalid', 'true');
    field.addEventListener('input', () => showProblem(field, place, ''), { once: true });
    field.focus();
  } else {
    field.removeAttribute('aria-invalid');
  }
}
