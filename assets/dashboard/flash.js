// A flash sale: pieces sold, held and left, the reservations that end next, and a change of the number of pieces.
// A watched sale is read with each poll.

import { call } from './api.js';
import { confirm } from './dialog.js';
import { element, formatDuration, formatNumber, formatTime, plural } from './format.js';
import { itemLinks, userLink } from './links.js';
import { lookUpWith } from './lookup.js';
import { act } from './notice.js';
import { showProblem } from './problem.js';
import { cell, fill, row } from './table.js';

const result = document.querySelector('[data-flash-result]');
const facts = document.querySelector('[data-flash-facts]');
const bar = document.querySelector('[data-flash-bar]');
const piecesForm = document.querySelector('[data-pieces]');
const piecesField = piecesForm.elements.change;
const piecesProblem = document.querySelector('[data-pieces-problem]');

const STATES = { upcoming: 'Not started', live: 'Live', sold_out: 'No piece is left', ended: 'Ended' };

/** The sale that is shown. */
let sale = null;

const path = (id, part) => `/flash/${encodeURIComponent(id)}/${part}`;

function show(read) {
  sale = read;
  const { id, state, now, starts, ends, pieces, sold, held, left, holds } = read;
  const clock = state === 'upcoming' ? `starts in ${formatDuration(starts - now)}` : state === 'ended' ? `ended at ${formatTime(ends)}` : `ends in ${formatDuration(ends - now)}`;
  result.hidden = false;
  facts.replaceChildren(
    element('p', {}, element('strong', {}, `${STATES[state]}`), `, ${clock}. `, ...itemLinks(id)),
    element('dl', { className: 'counts' }, ...[['Pieces', pieces], ['Sold', sold], ['Held', held], ['Left', left]].map(([name, count]) => element('div', {}, element('dt', {}, name), element('dd', {}, formatNumber(count))))),
  );
  for (const [part, count] of Object.entries({ sold, held })) bar.querySelector(`.${part}`).style.width = `${Math.min(100, (count / pieces) * 100)}%`;
  bar.setAttribute('aria-label', `${formatNumber(sold)} sold, ${formatNumber(held)} held and ${formatNumber(left)} left of ${plural(pieces, 'piece')}`);
  fill('holds', holds.slice(0, 10).map(({ user, until }) => row(
    cell(userLink(user)),
    cell(until > now ? `in ${formatDuration(Math.round(until - now))}` : 'being released'),
  )));
  document.querySelector('[data-more-holds]').textContent = holds.length > 10 ? `${plural(held - 10, 'more piece is', 'more pieces are')} held.` : '';
}

function hide() {
  sale = null;
  result.hidden = true;
}

/** Changes the number of pieces of a sale; shows the sale unless another one is shown meanwhile. */
async function setPieces(id, was, pieces) {
  const changed = await call(path(id, 'pieces'), { method: 'PUT', body: { was, pieces } });
  if (sale?.id === id) show(changed);
}

async function changePieces() {
  const { id, pieces, sold, held } = sale;
  const change = Number(piecesField.value);
  const isNumber = Number.isInteger(change) && change !== 0;
  const wanted = pieces + change;
  const rule = !isNumber ? 'Enter a whole number, such as 10, or -10 to remove pieces.' : wanted < Math.max(1, sold + held) ? `At least ${formatNumber(Math.max(1, sold + held))} pieces must stay: ${formatNumber(sold)} sold and ${formatNumber(held)} held.` : '';
  showProblem(piecesField, piecesProblem, rule);
  if (rule) return undefined;
  if (change < 0 && !await confirm({
    title: `Remove ${plural(-change, 'piece')} from ${id}?`,
    text: `The sale then has ${plural(wanted, 'piece')}. You can undo this.`,
    action: `Remove ${plural(-change, 'piece')}`,
  })) return undefined;
  await setPieces(id, pieces, wanted);
  piecesField.value = '';
  return {
    message: `${id} has ${plural(wanted, 'piece')}.`,
    revert: async () => {
      await setPieces(id, wanted, pieces);
      return `${id} has ${plural(pieces, 'piece')} again.`;
    },
  };
}

/** Reads the watched sale again. */
export async function refreshSale() {
  if (!sale) return;
  const { id } = sale;
  try {
    const read = await call(path(id, 'holds'));
    if (sale?.id === id) show(read);
  } catch {
    // The health line shows the problem.
  }
}

/** Suggests scheduled rows. */
export function suggestSales(rows) {
  document.querySelector('#scheduled-rows').replaceChildren(...rows.map(({ id }) => element('option', { value: id })));
}

lookUpWith(document.querySelector('[data-flash]'), {
  find: async (id) => show(await call(path(id, 'holds'))),
  hide,
  missing: 'Enter the id of the sale, which is the id of its row.',
  hint: 'A sale is a scheduled row with sale_starts_at, sale_ends_at and sale_pieces.',
});

piecesForm.addEventListener('submit', (event) => {
  event.preventDefault();
  act(event.submitter, changePieces);
});
