// The abandoned carts, newest first, page by page.

import { call } from './api.js';
import { element, formatNumber, pastTime, plural } from './format.js';
import { itemLinks, userLink } from './links.js';
import { act } from './notice.js';
import { cell, fill, row } from './table.js';

const newerButton = document.querySelector('[data-newer]');
const olderButton = document.querySelector('[data-older]');

/** The path of the list. The dashboard's poll loads its first page. */
export const ABANDONED = '/abandoned?limit=5';

/** The cursors of the pages up to the shown one; the first page has none. */
let cursors = [null];
let next = null;

function show(page) {
  const now = Date.now() / 1000;
  next = page.next;
  fill('abandoned', page.carts.map(({ user, ended, items }) => row(
    cell(ended ? pastTime(ended, now) : '–'),
    cell(user ? userLink(user) : 'Guest'),
    cell([
      ...items.slice(0, 3).map(({ id, quantity }) => element('div', {}, `${formatNumber(quantity)} × `, ...itemLinks(id))),
      items.length > 3 ? plural(items.length - 3, 'more', 'more') : '',
    ]),
  )));
  newerButton.disabled = cursors.length === 1;
  olderButton.disabled = next === null;
  document.querySelector('[data-abandoned-page]').textContent = `Page ${cursors.length}`;
}

/** Shows the newest carts, unless the operator reads an older page. */
export function showAbandoned(page) {
  if (cursors.length === 1) show(page);
}

async function turnTo(pages) {
  const before = pages.at(-1);
  const page = await call(before === null ? ABANDONED : `${ABANDONED}&before=${encodeURIComponent(before)}`);
  cursors = pages;
  show(page);
}

newerButton.addEventListener('click', () => act(newerButton, async () => {
  await turnTo(cursors.slice(0, -1));
  if (newerButton.disabled) olderButton.focus();
}));
olderButton.addEventListener('click', () => act(olderButton, async () => {
  await turnTo([...cursors, next]);
  if (olderButton.disabled) newerButton.focus();
}));
