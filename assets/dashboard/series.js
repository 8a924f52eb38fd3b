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

/** The columns of each chart. Leaves out an interval that has just started: its counts are still in the isolates' memory. */
export function chartColumns({ at: starts, counts, now, width }) {
  const duration = (index) => Math.min(width, now - starts[index]);
  const length = starts.length - (duration(starts.length - 1) < Math.max(4, width / 3) ? 1 : 0);
  const at = starts.slice(0, length);
  const column = (value) => at.map((_, index) => value(index));
  const named = (names) => names.map((name) => counts[name]);
  const rate = (names, seconds = 1) => column((index) => (sum(named(names), index) / duration(index)) * seconds);
  // An interval without requests is a gap in the chart.
  const ratio = (parts, all) => column((index) => {
    const whole = sum(named(all), index);
    return whole > 0 ? sum(named(parts), index) / whole : null;
  });
  return {
    responses: { at, ...Object.fromEntries(Object.entries(GROUPS).map(([group, names]) => [group, rate(names)])) },
    hits: { at, ratio: ratio(SERVED, CACHEABLE) },
    redis: {
      at,
      requests: ratio(['redis_requests'], RESPONSES),
      commands: ratio(['redis_commands'], RESPONSES),
      background: ratio(['later_commands'], RESPONSES),
    },
    activity: { at, views: rate(['views'], 60), additions: rate(['additions'], 60), orders: rate(['orders'], 60) },
  };
}

/** The counts of approximately the last `seconds`, and the exact duration. */
export function recentCounts({ at, counts, now }, seconds) {
  const from = Math.max(0, at.findLastIndex((start) => start <= now - seconds));
  const recent = Object.fromEntries(Object.entries(counts).map(([name, column]) => [name, column.slice(from).reduce((one, other) => one + other, 0)]));
  return { counts: recent, seconds: now - at[from] };
}
