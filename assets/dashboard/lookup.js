// A form that looks something up by the text of its field.

import { RequestError } from './api.js';
import { act } from './notice.js';
import { showProblem } from './problem.js';

/**
 * Submitting the form runs `find(text)`. Without a text or a result, runs `hide` and shows the problem: `missing`, or the
 * refusal of the API and `hint`. Returns a function that looks `text` up.
 */
export function lookUpWith(form, { find, hide, missing, hint = '' }) {
  const field = form.querySelector('input');
  const problem = form.querySelector('.problem');

  function clear() {
    hide();
    showProblem(field, problem, '');
  }

  async function lookUp() {
    const text = field.value.trim();
    showProblem(field, problem, text ? '' : missing);
    if (!text) return void hide();
    try {
      return await find(text);
    } catch (error) {
      hide();
      if (error.constructor !== RequestError) throw error;
      return showProblem(field, problem, `${error.message} ${hint}`.trim());
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act(event.submitter, lookUp);
  });
  field.addEventListener('input', () => {
    if (!field.value.trim()) clear();
  });
  document.addEventListener('forget', () => {
    form.reset();
    clear();
  });
  return (text) => {
    field.value = text;
    field.focus();
    act(null, lookUp);
  };
}
