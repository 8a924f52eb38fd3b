// The health line: one sentence per problem.

import { formatDuration, formatNumber, formatPercent, formatTime, plural } from './format.js';
import { CACHEABLE, RESPONSES, SERVED, recentCounts, sumOf } from './series.js';

/** Seconds without a heartbeat. The cron jobs write one at least every nine minutes; /readyz uses the same limit. */
const MAX_HEARTBEAT_AGE = 1200;
/** Seconds after which only the table of jobs shows a failure. A failing job fails again sooner; /metrics uses the same limit. */
const RECENT_FAILURE = 600;
/** Seconds that a row may be overdue. A cron run ends 5 s before the next one starts, so a refresh may wait for the next run. */
const OVERDUE_GRACE = 30;

/** `{level, sentences}`. The level is `good`, `fair` (investigate) or `bad` (act now). */
export function diagnose({ traffic, stats, jobs, schedule, missing }) {
  const { now } = traffic;
  const bad = [];
  const fair = [];

  if (missing.length > 0) fair.push(`Could not load: ${missing.join(', ')}.`);
  if (!jobs) fair.push('The status of the cron jobs is unknown.');
  else if (jobs.heartbeat === null) fair.push('No cron job has run yet: rows and ranking are not up to date.');
  else if (now - jobs.heartbeat > MAX_HEARTBEAT_AGE) bad.push(`No cron job has run since ${formatTime(jobs.heartbeat)}.`);
  for (const [job, { error, finished }] of Object.entries(jobs?.reports ?? {})) {
    if (error && now - finished < RECENT_FAILURE) fair.push(`Cron job ${job} failed at ${formatTime(finished)}.`);
  }

  // A row is overdue after a whole missed interval: one missed refresh is made up by the next run.
  const overdue = (schedule?.rows ?? []).filter((row) => row.next + (row.every ?? 0) + OVERDUE_GRACE < now);
  if (overdue.length > 0) {
    const [worst] = overdue;
    const atLeast = overdue.length === schedule.rows.length && schedule.scheduled > overdue.length ? 'At least ' : '';
    bad.push(`${atLeast}${plural(overdue.length, 'row is', 'rows are')} overdue, ${worst.id} by ${formatDuration(now - worst.next)}.`);
  }

  const { counts } = recentCounts(traffic, 120);
  const responses = sumOf(counts, RESPONSES);
  const failures = Math.max(counts.redis_failures, counts.redis_down);
  if (failures > 0) {
    const isFrequent = failures > (counts.redis_requests + counts.later_requests) / 100;
    (isFrequent ? bad : fair).push(`${plural(failures, 'Redis error')} in the last two minutes.`);
  }
  if (counts.failed > 0 && counts.failed > responses / 100) {
    bad.push(`${formatPercent(counts.failed, responses)} of responses in the last two minutes were errors (status 5xx).`);
  }

  const collapse = hitRatioCollapse(traffic);
  if (collapse) fair.push(collapse);
  if (stats.sessions > stats.session_limit) fair.push(`${formatNumber(stats.sessions - stats.session_limit)} sessions over the limit: the next cleanup ends the oldest.`);
  else if (stats.sessions > 0.9 * stats.session_limit) fair.push('Sessions are near the limit: at the limit, the cleanup ends the oldest.');

  if (bad.length > 0) return { level: 'bad', sentences: [...bad, ...fair] };
  if (fair.length > 0) return { level: 'fair', sentences: fair };
  return { level: 'good', sentences: [responses > 0 ? 'Healthy.' : 'Healthy. No requests in the last two minutes.'] };
}

/** A sentence if the hit ratio of the last three minutes is less than half of the ratio before. Needs 20 and 50 requests to be significant. */
function hitRatioCollapse(traffic) {
  const { counts } = recentCounts(traffic, 180);
  const [served, cacheable] = [sumOf(counts, SERVED), sumOf(counts, CACHEABLE)];
  const [servedBefore, cacheableBefore] = [sumOf(traffic.totals, SERVED) - served, sumOf(traffic.totals, CACHEABLE) - cacheable];
  if (cacheable < 20 || cacheableBefore < 50 || (served / cacheable) * 2 > servedBefore / cacheableBefore) return null;
  return `The hit ratio dropped from ${formatPercent(servedBefore, cacheableBefore)} to ${formatPercent(served, cacheable)}.`;
}
