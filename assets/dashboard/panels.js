// The lists: top items, rows, crons, abandoned carts.

import { count, element, moment, plural, span } from './words.js';

const cell = (content, className = '') => element('td', { className }, content);
const row = (...cells) => element('tr', {}, ...cells);

function fill(name, rows) {
  document.querySelector(`[data-${name}]`).replaceChildren(...rows);
  const empty = document.querySelector(`[data-empty=${name}]`);
  if (empty) empty.hidden = rows.length > 0;
}

/** An arrow for who sees, words for who listens. */
function movement({ rank, before }) {
  const [arrow, kind, words] = before === null ? ['new', 'up', 'new among the first 100']
    : before > rank ? [`▲ ${before - rank}`, 'up', `up by ${before - rank}`]
      : before < rank ? [`▼ ${rank - before}`, 'down', `down by ${rank - before}`]
        : ['=', 'same', 'unchanged'];
  const shown = element('span', { className: kind }, arrow);
  shown.setAttribute('aria-hidden', 'true');
  return [shown, element('span', { className: 'away' }, words)];
}

export function showItems(items) {
  fill('items', items.map((item) => {
    const moved = element('td');
    moved.append(...movement(item));
    return row(cell(item.rank + 1, 'number'), element('th', { scope: 'row' }, item.id), cell(count(item.views, 1), 'number'), moved);
  }));
}

export function showRows(rows, now) {
  fill('rows', rows.map(({ id, every, next, age }) => {
    const late = now - next;
    const due = late <= 0 ? `in ${span(Math.round(-late))}` : late < 1 ? 'now' : `${span(late)} late`;
    const isLate = late > (every ?? 0) + 30;
    return row(
      element('th', { scope: 'row' }, id),
      cell(every === null ? 'never' : span(every), 'number'),
      cell(age === null ? 'no copy' : span(age), 'number'),
      cell(due, isLate ? 'bad' : ''),
    );
  }));
}

const NAMES = { 'clean-sessions': 'Clean sessions', 'refresh-rows': 'Refresh rows', rescale: 'Rescale the ranking' };

/** What the figures of a report are called; those of no job that is known here keep their names. */
const DONE = {
  sessions: ['session ended', 'sessions ended'],
  carts: ['cart recorded', 'carts recorded'],
  unfinished: ['not finished'],
  refreshed: ['row refreshed', 'rows refreshed'],
  removed: ['row removed', 'rows removed'],
  failed: ['row failed', 'rows failed'],
  lost: ['row left to another run', 'rows left to other runs'],
  halvings: ['halving', 'halvings'],
  trimmed: ['item beyond the last rank', 'items beyond the last rank'],
  forgotten: ['item forgotten', 'items forgotten'],
};

/** `{sessions: 2, unfinished: false}` as "2 sessions ended". */
function did({ done, error }) {
  const parts = Object.entries(done).filter(([, value]) => value).map(([name, value]) => {
    const [one, many] = DONE[name] ?? [name, name];
    return value === true ? one : plural(value, one, many);
  });
  return (error ? [`failed: ${error}`, ...parts] : parts).join(', ') || 'nothing was to be done';
}

export function showJobs({ heartbeat, next, reports }, now) {
  document.querySelector('[data-heartbeat]').replaceChildren(
    ...(heartbeat === null ? ['They have not run yet.'] : ['They last showed that they run at ', moment(heartbeat, now), '.']),
  );
  fill('jobs', Object.entries(next).map(([job, at]) => {
    const report = reports[job];
    return row(
      element('th', { scope: 'row' }, NAMES[job] ?? job),
      cell(report ? moment(report.finished, now) : 'none yet'),
      cell(report ? did(report) : '–', report?.error ? 'bad' : ''),
      cell(at > now ? `in ${span(Math.round(at - now))}` : 'now'),
    );
  }));
}

export function showAbandoned(carts) {
  const now = Date.now() / 1000;
  fill('abandoned', carts.map(({ user, ended, items }) => row(
    cell(ended ? moment(ended, now) : '–'),
    cell(user || 'a guest'),
    cell(items.slice(0, 3).map(({ id, quantity }) => `${count(quantity)} × ${id}`).join(', ') + (items.length > 3 ? ` and ${plural(items.length - 3, 'more', 'more')}` : '')),
  )));
}
