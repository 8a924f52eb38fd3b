// The tables: top items, row cache, cron jobs, abandoned carts.

import { element, formatDuration, formatNumber, pastTime, plural } from './format.js';

const cell = (content, className = '') => element('td', { className }, content);
const row = (...cells) => element('tr', {}, ...cells);

function fill(name, rows) {
  document.querySelector(`[data-${name}]`).replaceChildren(...rows);
  const empty = document.querySelector(`[data-empty=${name}]`);
  if (empty) empty.hidden = rows.length > 0;
}

/** The change of a rank: an arrow, and text for screen readers. */
function rankChange({ rank, before }) {
  const [arrow, kind, text] = before === null ? ['new', 'up', 'new in the top 100']
    : before > rank ? [`▲ ${before - rank}`, 'up', `up by ${before - rank}`]
      : before < rank ? [`▼ ${rank - before}`, 'down', `down by ${rank - before}`]
        : ['=', 'same', 'unchanged'];
  const visible = element('span', { className: kind }, arrow);
  visible.setAttribute('aria-hidden', 'true');
  return [visible, element('span', { className: 'visually-hidden' }, text)];
}

export function showItems(items) {
  fill('items', items.map((item) => {
    const change = element('td');
    change.append(...rankChange(item));
    return row(cell(item.rank + 1, 'number'), element('th', { scope: 'row' }, item.id), cell(formatNumber(item.views, 1), 'number'), change);
  }));
}

export function showRows(rows, now) {
  fill('rows', rows.map(({ id, every, next, age }) => {
    const overdue = now - next;
    const due = overdue <= 0 ? `in ${formatDuration(Math.round(-overdue))}` : overdue < 1 ? 'now' : `${formatDuration(overdue)} overdue`;
    // Like OVERDUE_GRACE in health.js.
    const isOverdue = overdue > (every ?? 0) + 30;
    return row(
      element('th', { scope: 'row' }, id),
      cell(every === null ? 'never' : formatDuration(every), 'number'),
      cell(age === null ? 'not cached' : formatDuration(age), 'number'),
      cell(due, isOverdue ? 'bad' : ''),
    );
  }));
}

const JOB_NAMES = { 'clean-sessions': 'Session cleanup', 'refresh-rows': 'Row refresh', rescale: 'Ranking rescale', 'roll-up': 'Traffic roll-up' };

/** Singular and plural of the counts in a job report. Unknown counts keep their names. */
const REPORT_TERMS = {
  sessions: ['session ended', 'sessions ended'],
  carts: ['cart recorded', 'carts recorded'],
  unfinished: ['unfinished'],
  refreshed: ['row refreshed', 'rows refreshed'],
  removed: ['row removed', 'rows removed'],
  failed: ['row failed', 'rows failed'],
  lost: ['row rescheduled during the run', 'rows rescheduled during the run'],
  halvings: ['halving', 'halvings'],
  trimmed: ['item trimmed', 'items trimmed'],
  minutes: ['minute', 'minutes'],
  hours: ['hour', 'hours'],
  forgotten: ['item expired', 'items expired'],
};

/** `{sessions: 2, unfinished: false}` as "2 sessions ended". */
function reportText({ done, error }) {
  const parts = Object.entries(done).filter(([, value]) => value).map(([name, value]) => {
    const [one, many] = REPORT_TERMS[name] ?? [name, name];
    return value === true ? one : plural(value, one, many);
  });
  return (error ? [`failed: ${error}`, ...parts] : parts).join(', ') || 'nothing to do';
}

export function showJobs({ heartbeat, next, reports }, now) {
  document.querySelector('[data-heartbeat]').replaceChildren(
    ...(heartbeat === null ? ['No run yet.'] : ['Last heartbeat: ', pastTime(heartbeat, now), '.']),
  );
  fill('jobs', Object.entries(next).map(([job, at]) => {
    const report = reports[job];
    return row(
      element('th', { scope: 'row' }, JOB_NAMES[job] ?? job),
      cell(report ? pastTime(report.finished, now) : 'never'),
      cell(report ? reportText(report) : '–', report?.error ? 'bad' : ''),
      cell(at > now ? `in ${formatDuration(Math.round(at - now))}` : 'now'),
    );
  }));
}

export function showAbandoned(carts) {
  const now = Date.now() / 1000;
  fill('abandoned', carts.map(({ user, ended, items }) => row(
    cell(ended ? pastTime(ended, now) : '–'),
    cell(user || 'Guest'),
    cell(items.slice(0, 3).map(({ id, quantity }) => `${formatNumber(quantity)} × ${id}`).join(', ') + (items.length > 3 ? `, ${plural(items.length - 3, 'more', 'more')}` : '')),
  )));
}
