// The table of the cron jobs. Runs a job now.

import { call } from './api.js';
import { element, formatDuration, pastTime, plural } from './format.js';
import { act } from './notice.js';
import { cell, fill, heading, row, rowButton } from './table.js';

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

async function run(job) {
  const report = await call(`/jobs/${job}`, { method: 'POST' });
  document.dispatchEvent(new CustomEvent('changed'));
  return { message: `${JOB_NAMES[job] ?? job} has run: ${reportText(report)}.` };
}

export function showJobs({ heartbeat, next, reports }, now) {
  document.querySelector('[data-heartbeat]').replaceChildren(
    ...(heartbeat === null ? ['No run yet.'] : ['Last heartbeat: ', pastTime(heartbeat, now), '.']),
  );
  fill('jobs', Object.entries(next).map(([job, at]) => {
    const [report, name] = [reports[job], JOB_NAMES[job] ?? job];
    return row(
      heading(name),
      cell(report ? pastTime(report.finished, now) : 'never'),
      cell(report ? reportText(report) : '–', report?.error ? 'bad' : ''),
      cell([
        element('span', {}, at > now ? `in ${formatDuration(Math.round(at - now))}` : 'now'), ' ',
        rowButton('Run now', name, `run:${job}`, (button) => act(button, () => run(job))),
      ]),
    );
  }));
}
