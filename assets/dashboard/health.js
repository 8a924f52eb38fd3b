// One line in words: all is well, or what is not.

import { ANSWERS, SERVED, STORABLE, latest, together } from './series.js';
import { clock, count, percent, plural, span } from './words.js';

/** The crons show themselves every third minute; after ten they are silent for /readyz, too. */
const SILENCE = 600;
/** A failure that old is told by the list of jobs only. */
const RECENT = 900;
/** A cron run ends 5 s before the next: so much may be missed of a turn. */
const GRACE = 30;

/** `{level, words}`: `good`, `fair` (look at it) or `bad` (act), with a sentence for each reason. */
export function diagnose({ traffic, stats, jobs, schedule, missing }) {
  const { now } = traffic;
  const bad = [];
  const fair = [];

  if (missing.length > 0) fair.push(`Not to be had now: ${missing.join(', ')}.`);
  if (!jobs) fair.push('Whether the crons run is not known.');
  else if (jobs.heartbeat === null) fair.push('No cron has run yet: rows and the ranking wait for one.');
  else if (now - jobs.heartbeat > SILENCE) bad.push(`The crons are silent since ${clock(jobs.heartbeat)}.`);
  for (const [job, { error, finished }] of Object.entries(jobs?.reports ?? {})) {
    if (error && now - finished < RECENT) fair.push(`${job} failed at ${clock(finished)}.`);
  }

  // The row's own period, too: a turn that was missed once is made up for at the next.
  const late = (schedule?.rows ?? []).filter((row) => row.next + (row.every ?? 0) + GRACE < now);
  if (late.length > 0) {
    const [worst] = late;
    const atLeast = late.length === schedule.rows.length && schedule.scheduled > late.length ? 'At least ' : '';
    bad.push(`${atLeast}${plural(late.length, 'row is', 'rows are')} late, ${worst.id} by ${span(now - worst.next)}.`);
  }

  const { figures } = latest(traffic, 120);
  const answers = together(figures, ANSWERS);
  const failures = Math.max(figures.redis_failures, figures.redis_down);
  if (failures > 0) {
    const often = failures > (figures.redis_requests + figures.later_requests) / 100;
    (often ? bad : fair).push(`Redis failed ${plural(failures, 'time')} in the last two minutes.`);
  }
  if (figures.failed > 0 && figures.failed > answers / 100) {
    bad.push(`${percent(figures.failed, answers)} of the last answers failed (status 5xx).`);
  }

  const collapse = hitRatioCollapse(traffic);
  if (collapse) fair.push(collapse);
  if (stats.sessions > stats.session_limit) fair.push(`Sessions are over the cap by ${count(stats.sessions - stats.session_limit)}: the cleaning ends the oldest.`);
  else if (stats.sessions > 0.9 * stats.session_limit) fair.push('Sessions are near their cap: soon the oldest leave.');

  if (bad.length > 0) return { level: 'bad', words: [...bad, ...fair] };
  if (fair.length > 0) return { level: 'fair', words: fair };
  return { level: 'good', words: [answers > 0 ? 'All is well.' : 'All is well, and quiet.'] };
}

/** Whether of the last three minutes' pages half as many were hits as before; from 20 and 50 requests on, or it would be chance. */
function hitRatioCollapse(traffic) {
  const { figures } = latest(traffic, 180);
  const [served, storable] = [together(figures, SERVED), together(figures, STORABLE)];
  const [servedBefore, storableBefore] = [together(traffic.totals, SERVED) - served, together(traffic.totals, STORABLE) - storable];
  if (storable < 20 || storableBefore < 50 || (served / storable) * 2 > servedBefore / storableBefore) return null;
  return `The hit ratio fell to ${percent(served, storable)}; before it was ${percent(servedBefore, storableBefore)}.`;
}
