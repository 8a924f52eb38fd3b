// Rows of the tables.

import { element } from './format.js';
import { refocus } from './dialog.js';

/** A cell with a text, an element, or a list of both. */
export const cell = (content, className = '') => element('td', { className }, ...[content].flat());
/** The cell that names its row. */
export const heading = (content) => element('th', { scope: 'row' }, ...[content].flat());
export const row = (...cells) => element('tr', {}, ...cells);

/** A button in a row. `what` completes its label for screen readers; `key` finds it again after the table is redrawn. */
export function rowButton(label, what, key, action) {
  const button = element('button', { type: 'button', className: 'small' }, label, element('span', { className: 'visually-hidden' }, ` ${what}`));
  button.dataset.key = key;
  button.addEventListener('click', () => action(button));
  return button;
}

/** Redraws the table `data-{name}`. The focus stays at its button; if the row is gone, it moves to the main part. */
export function fill(name, rows) {
  const body = document.querySelector(`[data-${name}]`);
  const { activeElement } = document;
  const focused = body.contains(activeElement) ? activeElement : null;
  body.replaceChildren(...rows);
  if (focused) refocus(focused.dataset.key);
  const empty = document.querySelector(`[data-empty=${name}]`);
  if (empty) empty.hidden = rows.length > 0;
}
