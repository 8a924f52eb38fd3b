// From counts in stretches of time to what the charts show.

const sum = (columns, index) => columns.reduce((all, column) => all + column[index], 0);

/** The kinds of answers that the chart shows as one. */
const KINDS = {
  hit: ['hit'],
  stale: ['stale'],
  stored: ['stored'],
  miss: ['miss'],
  unpopular: ['unpopular'],
  passed: ['no_item', 'dynamic', 'parameters', 'method', 'header'],
  api: ['api'],
  trouble: ['redis_down', 'failed'],
};
export const ANSWERS = Object.values(KINDS).flat();
export const SERVED = ['hit', 'stale'];
export const STORABLE = ['hit', 'stale', 'stored', 'miss'];

/** Of a set of figures, those named together. */
export const together = (figures, names) => names.reduce((all, name) => all + figures[name], 0);

/** The columns of each chart. A stretch that has just begun is left out: what it will hold is still in the isolates' memory. */
export function bundle({ at: begins, counts, now, width }) {
  const lasts = (index) => Math.min(width, now - begins[index]);
  const length = begins.length - (lasts(begins.length - 1) < Math.max(4, width / 3) ? 1 : 0);
  const at = begins.slice(0, length);
  const column = (figure) => at.map((_, index) => figure(index));
  const named = (names) => names.map((name) => counts[name]);
  const rate = (names, seconds = 1) => column((index) => (sum(named(names), index) / lasts(index)) * seconds);
  // Without anything to divide by there is nothing to draw.
  const ratio = (parts, all) => column((index) => {
    const whole = sum(named(all), index);
    return whole > 0 ? sum(named(parts), index) / whole : null;
  });
  return {
    answers: { at, ...Object.fromEntries(Object.entries(KINDS).map(([kind, names]) => [kind, rate(names)])) },
    hits: { at, ratio: ratio(SERVED, STORABLE) },
    redis: {
      at,
      requests: ratio(['redis_requests'], ANSWERS),
      commands: ratio(['redis_commands'], ANSWERS),
      later: ratio(['later_commands'], ANSWERS),
    },
    doing: { at, views: rate(['views'], 60), additions: rate(['additions'], 60), orders: rate(['orders'], 60) },
  };
}

/** The figures of about the last `seconds`, and how many seconds those were. */
export function latest({ at, counts, now }, seconds) {
  const from = Math.max(0, at.findLastIndex((begin) => begin <= now - seconds));
  const figures = Object.fromEntries(Object.entries(counts).map(([name, column]) => [name, column.slice(from).reduce((one, other) => one + other, 0)]));
  return { figures, seconds: now - at[from] };
}
