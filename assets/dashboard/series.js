// Converts traffic counts per time interval to chart columns.

const sum = (columns, index) => columns.reduce((all, column) => all + column[index], 0);

/** The API's counters, grouped as the chart shows them. */
const GROUPS = {
  hit: ['hit'],
  stale: ['stale'],
  stored: ['stored'],
  miss: ['miss'],
  unpopular: ['unpopular'],
  passed: ['no_item', 'dynamic', 'parameters', 'method', 'header'],
  api: ['api'],
  errors: ['redis_down', 'failed'],
};
export const RESPONSES = Object.values(GROUPS).flat();
export const SERVED = ['hit', 'stale'];
export const CACHEABLE = ['hit', 'stale', 'stored', 'miss'];

/** The sum of the counts with these names. */
export const sumOf = (counts, names) => names.reduce((all, name) => all + counts[name], 0);

/** Milliseconds of a column of seconds. A gap stays a gap. */
const inMillis = (column) => column.map((seconds) => (seconds === null ? null : seconds * 1000));

/** Visitors online: the samples of the last hours or days, then those of this page. */
function onlineColumns(samples, polled, from) {
  const since = polled[0][0];
  const points = [...samples.filter(([at]) => at < since), ...polled].filter(([at]) => at >= from);
  // A chart needs two points: without a sample, the first one has no value.
  if (points.length < 2) points.unshift([from, null]);
  return { at: points.map(([at]) => at), online: points.map(([, online]) => online) };
}

/**
 * The columns of each chart. `polled` has the visitors online at each poll. Leaves out an interval that has just
 * started: its counts are still in the isolates' memory for some seconds.
 */
export function chartColumns({ at: starts, counts, now, width, latency, errors, online }, polled) {
  const duration = (index) => Math.min(width, now - starts[index]);
  const length = starts.length - (duration(starts.length - 1) < Math.min(20, Math.max(4, width / 3)) ? 1 : 0);
  const at = starts.slice(0, length);
  const column = (value) => at.map((_, index) => value(index));
  const named = (names) => names.map((name) => counts[name]);
  const rate = (names, seconds = 1) => column((index) => (sum(named(names), index) / duration(index)) * seconds);
  // An interval without requests is a gap in the chart.
  const ratio = (parts, all) => column((index) => {
    const whole = sum(named(all), index);
    return whole > 0 ? sum(named(parts), index) / whole : null;
  });
  const errorRate = (isIncluded) => {
    const columns = errors.filter(({ status }) => isIncluded(status)).map((error) => error.counts);
    return column((index) => (sum(columns, index) / duration(index)) * 60);
  };
  return {
    responses: { at, ...Object.fromEntries(Object.entries(GROUPS).map(([group, names]) => [group, rate(names)])) },
    hits: { at, ratio: ratio(SERVED, CACHEABLE) },
    redis: {
      at,
      requests: ratio(['redis_requests'], RESPONSES),
      commands: ratio(['redis_commands'], RESPONSES),
      background: ratio(['later_commands'], RESPONSES),
    },
    online: onlineColumns(online, polled, starts[0]),
    errors: { at, client: errorRate((status) => status < 500), server: errorRate((status) => status >= 500) },
    ...Object.fromEntries(Object.entries(latency).map(([kind, { p50, p95, p99 }]) => [
      `latency-${kind}`,
      { at, ...Object.fromEntries(Object.entries({ p50, p95, p99 }).map(([name, values]) => [name, inMillis(values.slice(0, length))])) },
    ])),
    activity: { at, views: rate(['views'], 60), additions: rate(['additions'], 60), orders: rate(['orders'], 60) },
  };
}

/** The counts of approximately the last `seconds`, and the exact duration. */
export function recentCounts({ at, counts, now }, seconds) {
  const from = Math.max(0, at.findLastIndex((start) => start <= now - seconds));
  const recent = Object.fromEntries(Object.entries(counts).map(([name, column]) => [name, column.slice(from).reduce((one, other) => one + other, 0)]));
  return { counts: recent, seconds: now - at[from] };
}
