// Figures and times as an operator reads them.

const number = (digits) => new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const whole = number(0);
const byDigits = [0, 1, 2].map(number);
const share = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** 12,345; with digits behind the point if said. */
export const count = (value, digits = 0) => byDigits[digits].format(value);

/** 82.4 %, or a dash where there is nothing to divide by. */
export const percent = (part, all) => (all > 0 ? share.format(part / all) : '–');

/** A quotient with two digits, or a dash where there is nothing to divide by. */
export const quotient = (part, all) => (all > 0 ? count(part / all, 2) : '–');

/** 67.1, of bytes. */
export const megabytes = (bytes) => count(bytes / 1e6, 1);

/** 18:20:03, of a Unix second. */
export const clock = (seconds) => time.format(seconds * 1000);

/** 0.4 s, 12 s, 3 min, 2 h or 5 days. */
export function span(seconds) {
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** "1 row", "2 rows". */
export const plural = (value, one, many = `${one}s`) => `${whole.format(value)} ${value === 1 ? one : many}`;

export function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

/** A moment in the past with how long ago it was. */
export function moment(seconds, now) {
  const at = new Date(seconds * 1000).toISOString();
  const ago = Math.max(0, now - seconds);
  return element('time', { dateTime: at, title: at }, ago < 86_400 ? `${clock(seconds)}, ${span(Math.round(ago))} ago` : `${span(ago)} ago`);
}
