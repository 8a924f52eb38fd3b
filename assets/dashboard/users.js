// Finds a user: lists and ends the user's sessions, and shows a session's cart and recently viewed items.

import { call, hasKey } from './api.js';
import { confirm, open } from './dialog.js';
import { element, formatNumber, pastTime, plural } from './format.js';
import { itemLinks, linked } from './links.js';
import { lookUpWith } from './lookup.js';
import { act } from './notice.js';
import { cell, fill, heading, row, rowButton } from './table.js';

const result = document.querySelector('[data-user-result]');
const line = document.querySelector('[data-user-line]');
const endAllButton = document.querySelector('[data-end-all]');
const dialog = document.querySelector('[data-session-dialog]');

/** The user whose sessions are shown. */
let shown = null;

const path = (user, id) => `/users/${encodeURIComponent(user)}/sessions${id ? `/${id}` : ''}`;
const nameOf = ({ device, id }) => device ?? `Unknown device (${id.slice(0, 6)})`;

/** Lists the sessions of a user. */
async function list(user) {
  const { sessions } = await call(path(user));
  shown = user;
  const now = Date.now() / 1000;
  result.hidden = false;
  line.textContent = sessions.length > 0 ? `${user}: ${plural(sessions.length, 'session')}.` : `${user} has no session. Check the spelling of the id: upper and lower case differ.`;
  endAllButton.hidden = sessions.length === 0;
  fill('sessions', sessions.map((session) => row(
    heading(nameOf(session)),
    cell(pastTime(session.began, now)),
    cell(pastTime(session.seen, now)),
    cell([
      rowButton('View', nameOf(session), `view:${session.id}`, (button) => act(button, () => view(user, session))),
      ' ',
      rowButton('End', nameOf(session), `end:${session.id}`, (button) => act(button, () => end(user, session))),
    ]),
  )));
}

/** Shows the cart and the viewed items of a session. */
async function view(user, { id }) {
  const { cart, recent, ...session } = await call(path(user, id));
  dialog.querySelector('h2').textContent = nameOf(session);
  dialog.querySelector('[data-session-user]').textContent = `Session of ${user}`;
  const items = (list, empty, show) => (list.length > 0 ? element('ul', {}, ...list.map((entry) => element('li', {}, ...show(entry)))) : element('p', { className: 'empty' }, empty));
  dialog.querySelector('[data-session-content]').replaceChildren(
    element('h3', {}, `Cart: ${plural(cart.quantity, 'piece')}`),
    items(cart.items, 'The cart is empty.', ({ id: item, quantity }) => [`${formatNumber(quantity)} × `, ...itemLinks(item)]),
    element('h3', {}, 'Viewed last'),
    items(recent, 'No item was viewed in this session.', (item) => itemLinks(item)),
  );
  if (await open(dialog) === 'end') return end(user, session);
  return undefined;
}

async function end(user, session) {
  const isSure = await confirm({
    title: `End the session on ${nameOf(session)}?`,
    text: `${user} is signed out there at once. The cart of the session is recorded as abandoned. This cannot be undone: the user has to sign in again.`,
    action: 'End session',
  });
  if (!isSure) return undefined;
  await call(path(user, session.id), { method: 'DELETE' });
  await list(user);
  return { message: `Ended the session of ${user} on ${nameOf(session)}.` };
}

async function endAll(user) {
  const isSure = await confirm({
    title: `End all sessions of ${user}?`,
    text: 'The user is signed out on all devices at once. The carts are recorded as abandoned. This cannot be undone: the user has to sign in again.',
    action: 'End all sessions',
  });
  if (!isSure) return undefined;
  const { ended } = await call(path(user), { method: 'DELETE' });
  await list(user);
  return { message: `Ended ${plural(ended, 'session')} of ${user}.` };
}

const findUser = lookUpWith(document.querySelector('[data-users]'), {
  find: list,
  hide() {
    result.hidden = true;
    fill('sessions', []);
  },
  missing: 'Enter the id of a user, as the shop names users: in the demo shop, an email address.',
});

endAllButton.addEventListener('click', () => act(endAllButton, () => endAll(shown)));

dialog.addEventListener('click', ({ target }) => {
  // A link in the dialog leads to another part of the page.
  if (target.closest('a')?.getAttribute('href').startsWith('#')) dialog.close('');
});

/** Finds the user of the page's address, if it has one. */
export function findLinkedUser() {
  const user = linked('user');
  if (user !== null && hasKey()) findUser(user);
}

addEventListener('hashchange', findLinkedUser);
