// The problem of a field.

/** Shows the problem of a field beside it; an empty `problem` clears it. */
export function showProblem(field, place, problem) {
  place.textContent = problem;
  if (problem) {
    field.setAttribute('aria-invalid', 'true');
    field.focus();
  } else {
    field.removeAttribute('aria-invalid');
  }
}
