// The result of the last action, at the bottom of the window. A status region announces it. It stays until the operator
// dismisses it or starts another action, because an undo with a time limit is easy to miss.

import { RequestError, Unavailable, WrongKey } from './api.js';

const notice = document.querySelector('[data-notice]');
const text = notice.querySelector('[data-notice-text]');
const undoButton = notice.querySelector('[data-undo]');
const dismissButton = notice.querySelector('[data-dismiss]');
let undo;

/** Shows a result. `revert`: reverts the action, and resolves with the text of the next notice. */
export function notify(message, { revert, isError = false } = {}) {
  undo = revert;
  text.textContent = message;
  notice.classList.toggle('error', isError);
  undoButton.hidden = !revert;
  dismissButton.hidden = false;
}

export function dismissNotice() {
  undo = undefined;
  text.textContent = '';
  undoButton.hidden = true;
  dismissButton.hidden = true;
}

/**
 * Runs an action: `work` resolves with `{message, revert}`, or with nothing if it was cancelled. An error becomes a
 * notice. `button` shows that the action is running, and ignores further clicks.
 */
export async function act(button, work) {
  if (button?.getAttribute('aria-busy') === 'true') return;
  button?.setAttribute('aria-busy', 'true');
  try {
    const result = await work();
    if (result) notify(result.message, { revert: result.revert });
  } catch (error) {
    if (error instanceof WrongKey) document.dispatchEvent(new CustomEvent('wrong-key', { detail: error.message }));
    else if (error instanceof RequestError || error instanceof Unavailable) notify(error.message, { isError: true });
    else throw error;
  } finally {
    button?.removeAttribute('aria-busy');
  }
}

undoButton.addEventListener('click', () => {
  const revert = undo;
  // The button disappears with its notice.
  dismissButton.focus();
  undoButton.hidden = true;
  act(undoButton, async () => ({ message: await revert() }));
});

dismissButton.addEventListener('click', () => {
  dismissNotice();
  document.querySelector('#main').focus();
});
