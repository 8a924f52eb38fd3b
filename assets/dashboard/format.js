// Formats numbers and times.

const number = (digits) => new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const integer = number(0);
const byDigits = [0, 1, 2].map(number);
const percentage = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });
const timeOfDay = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** 12,345, or with decimals 12,345.6. */
export const formatNumber = (value, digits = 0) => byDigits[digits].format(value);

/** 82.4%, or a dash if `all` is 0. */
export const formatPercent = (part, all) => (all > 0 ? percentage.format(part / all) : '–');

/** A ratio with two decimals, or a dash if `all` is 0. */
export const formatRatio = (part, all) => (all > 0 ? formatNumber(part / all, 2) : '–');

/** Megabytes with one decimal: 67.1. */
export const formatMegabytes = (bytes) => formatNumber(bytes / 1e6, 1);

/** The local time of day of Unix seconds: 18:20:03. */
export const formatTime = (seconds) => timeOfDay.format(seconds * 1000);

/** 0.4 s, 12 s, 3 min, 2 h or 5 days. */
export function formatDuration(seconds) {
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** "1 row", "2 rows". */
export const plural = (value, one, many = `${one}s`) => `${integer.format(value)} ${value === 1 ? one : many}`;

export function element(name, attributes = {}, ...children) {
  const created = Object.assign(document.createElement(name), attributes);
  created.append(...children);
  return created;
}

/** A past time and its age: "18:20:03, 12 s ago". */
export function pastTime(seconds, now) {
  const at = new Date(seconds * 1000).toISOString();
  const age = Math.max(0, now - seconds);
  return element('time', { dateTime: at, title: at }, age < 86_400 ? `${formatTime(seconds)}, ${formatDuration(Math.round(age))} ago` : `${formatDuration(age)} ago`);
}
