// The key metrics at the top.

import { CACHEABLE, RESPONSES, SERVED, recentCounts, sumOf } from './series.js';
import { formatMegabytes, formatNumber, formatPercent, formatRatio, plural } from './format.js';

const set = (name, value, note) => {
  document.querySelector(`[data-figure=${name}]`).textContent = value;
  document.querySelector(`[data-note=${name}]`)?.replaceChildren(note);
};

/** `traffic` is that of the time range, `recent` that of the last minutes. */
export function showFigures(traffic, recent, stats) {
  const { totals } = traffic;
  const { counts, seconds } = recentCounts(recent, 60);
  const responses = sumOf(totals, RESPONSES);
  const cacheable = sumOf(totals, CACHEABLE);
  set('hits', formatPercent(sumOf(totals, SERVED), cacheable), `of ${plural(cacheable, 'request')}; cache: ${formatMegabytes(stats.page_bytes)} of ${formatMegabytes(stats.page_limit)} MB`);
  set('rate', formatNumber(sumOf(counts, RESPONSES) / seconds, 1), `in the last minute; ${formatNumber(responses)} in total`);
  set('redis', formatRatio(totals.redis_requests, responses), `${formatRatio(totals.redis_commands, responses)} commands; ${formatRatio(totals.later_commands, responses)} in the background`);
  set('online', formatNumber(stats.online), 'active in the last 5 minutes');
  set('sessions', formatNumber(stats.sessions), `${formatPercent(stats.sessions, stats.session_limit)} of ${formatNumber(stats.session_limit)}`);
  set('conversion', formatPercent(totals.orders, totals.views), `${plural(totals.orders, 'order')}, ${plural(totals.views, 'view')}`);
  set('carts', formatPercent(totals.orders, totals.carts), `${plural(totals.orders, 'order')}, ${plural(totals.carts, 'cart')}`);
  set('abandoned', formatNumber(stats.abandoned_carts), '');
  document.querySelector('[data-cap]').value = Math.min(1, stats.sessions / stats.session_limit);
}
