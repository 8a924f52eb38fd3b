// The row cache: the table of rows, and the dialog that shows, schedules, changes and unschedules a row.

import { RequestError, call, hasKey } from './api.js';
import { confirm, open } from './dialog.js';
import { element, formatDuration } from './format.js';
import { explainLink, itemPath, linked, pageLink } from './links.js';
import { act } from './notice.js';
import { showProblem } from './problem.js';
import { cell, fill, heading, row, rowButton } from './table.js';

const dialog = document.querySelector('[data-row-dialog]');
const form = dialog.querySelector('form');
const [idField, everyField] = ['id', 'every'].map((name) => form.elements[name]);
const [idProblem, everyProblem] = ['id', 'every'].map((name) => dialog.querySelector(`[data-row-problem=${name}]`));
const facts = dialog.querySelector('[data-row-facts]');
const unscheduleButton = dialog.querySelector('[data-unschedule]');

const schedulePath = (id) => `/rows/${encodeURIComponent(id)}/schedule`;
const changed = () => document.dispatchEvent(new CustomEvent('changed'));

async function setSchedule(id, every) {
  await call(schedulePath(id), { method: 'PUT', body: { every } });
  changed();
}

/** Schedules a row, with an undo that restores its earlier period (0: it was not scheduled). */
async function schedule(id, every, before) {
  await setSchedule(id, every);
  const restore = async () => {
    await setSchedule(id, before);
    return before > 0 ? `Row ${id} is refreshed every ${formatDuration(before)} again.` : `Row ${id} is not refreshed any more.`;
  };
  return { message: `Row ${id} is refreshed every ${formatDuration(every)}.`, revert: restore };
}

async function unschedule(id, every) {
  const isSure = await confirm({
    title: `Stop refreshing ${id}?`,
    text: 'Its copy is deleted. Pages that show the row get a 404 for it, and a flash sale of the row stops at once. You can undo this.',
    action: 'Stop refreshing',
  });
  if (!isSure) return undefined;
  await setSchedule(id, 0);
  return {
    message: `Row ${id} is not refreshed any more.`,
    revert: async () => {
      await setSchedule(id, every);
      return `Row ${id} is refreshed every ${formatDuration(every)} again.`;
    },
  };
}

/** The period of a row; 0 if it is not scheduled. */
async function periodOf(id) {
  try {
    return (await call(schedulePath(id))).every;
  } catch (error) {
    if (error instanceof RequestError) return 0;
    throw error;
  }
}

/** The columns of the row's copy. */
async function copyOf(id) {
  try {
    return Object.entries(await call(`/rows/${encodeURIComponent(id)}`));
  } catch {
    return [];
  }
}

/** Opens the dialog for a row, or for a new one without `id`. */
async function edit(id = '') {
  const every = id ? await periodOf(id) : 0;
  const columns = every > 0 ? await copyOf(id) : [];
  dialog.querySelector('h2').textContent = id ? `Row ${id}` : 'Schedule a row';
  idField.value = id;
  idField.closest('label').hidden = id !== '';
  everyField.value = every || 60;
  unscheduleButton.hidden = every === 0;
  showProblem(idField, idProblem, '');
  showProblem(everyField, everyProblem, '');
  const path = id && itemPath(id);
  const links = [
    ...(path ? [explainLink(path, 'Explain its page'), ' ', pageLink(path, id), ' '] : []),
    ...(every > 0 ? [element('a', { href: `/_edge/v1/rows/${encodeURIComponent(id)}`, target: '_blank' }, 'JSON')] : []),
  ];
  facts.replaceChildren(
    element('p', { className: 'note' }, ...(!id ? ['edgefront reads the row from the shop and refreshes it with this interval.'] : every > 0 ? links : ['The row is not scheduled. ', ...links])),
    element('dl', {}, ...columns.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value === null ? 'null' : typeof value === 'object' ? JSON.stringify(value) : String(value))))),
  );
  form.dataset.before = every;
  const outcome = await open(dialog);
  const row = idField.value.trim();
  if (outcome === 'save') return schedule(row, Number(everyField.value), row === id ? every : await periodOf(row));
  if (outcome === 'unschedule') return unschedule(id, every);
  return undefined;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const [id, every] = [idField.value.trim(), Number(everyField.value)];
  const isId = /^[\w.~-]{1,64}$/.test(id);
  const isPeriod = every >= 0.1 && every <= 31_536_000;
  showProblem(idField, idProblem, isId ? '' : 'Enter an id of 1 to 64 letters, digits and - . _ ~');
  if (!isId) return;
  showProblem(everyField, everyProblem, isPeriod ? '' : 'Enter 0.1 to 31,536,000 seconds.');
  if (isPeriod) dialog.close('save');
});

document.querySelector('[data-add-row]').addEventListener('click', ({ currentTarget: button }) => act(button, () => edit()));

/** Opens the row of the page's address, if it has one. */
export function openLinkedRow() {
  const id = linked('row');
  if (id === null || !hasKey() || dialog.open) return;
  // A second click on the same link opens the dialog again.
  history.replaceState(null, '', location.pathname + location.search);
  act(null, () => edit(id));
}

addEventListener('hashchange', openLinkedRow);
// A link in the dialog leads to another part of the page.
facts.addEventListener('click', ({ target }) => {
  if (target.closest('a')?.hash) dialog.close('');
});

export function showRows(rows, now) {
  fill('rows', rows.map(({ id, every, next, age }) => {
    const overdue = now - next;
    const due = overdue <= 0 ? `in ${formatDuration(Math.round(-overdue))}` : overdue < 1 ? 'now' : `${formatDuration(overdue)} late`;
    // Like OVERDUE_GRACE in health.js.
    const isOverdue = overdue > (every ?? 0) + 30;
    return row(
      heading([element('a', { href: `#row=${encodeURIComponent(id)}`, title: `Row ${id}` }, id), ...(itemPath(id) ? [' ', pageLink(itemPath(id), id)] : [])]),
      cell(every === null ? 'never' : formatDuration(every), 'number'),
      cell(age === null ? 'none' : formatDuration(age), 'number'),
      cell([element('span', { className: isOverdue ? 'bad' : '' }, due), ' ', rowButton('Edit', id, `edit:${id}`, (button) => act(button, () => edit(id)))]),
    );
  }));
}
