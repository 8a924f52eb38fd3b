// The large figures at the top.

import { ANSWERS, SERVED, STORABLE, latest, together } from './series.js';
import { count, megabytes, percent, plural, quotient } from './words.js';

const set = (name, value, note) => {
  document.querySelector(`[data-figure=${name}]`).textContent = value;
  document.querySelector(`[data-note=${name}]`)?.replaceChildren(note);
};

export function showFigures(traffic, stats) {
  const { totals } = traffic;
  const { figures, seconds } = latest(traffic, 60);
  const answers = together(totals, ANSWERS);
  const storable = together(totals, STORABLE);
  set('hits', percent(together(totals, SERVED), storable), `of ${plural(storable, 'request')}; ${megabytes(stats.page_bytes)} of ${megabytes(stats.page_limit)} MB stored`);
  set('rate', count(together(figures, ANSWERS) / seconds, 1), `in the last minute; ${count(answers)} in all`);
  set('redis', quotient(totals.redis_requests, answers), `${quotient(totals.redis_commands, answers)} commands; ${quotient(totals.later_commands, answers)} behind it`);
  set('online', count(stats.online), 'seen in the last 5 minutes');
  set('sessions', count(stats.sessions), `${percent(stats.sessions, stats.session_limit)} of ${count(stats.session_limit)}`);
  set('conversion', percent(totals.orders, totals.views), `${plural(totals.orders, 'order')}, ${plural(totals.views, 'view')}`);
  set('carts', percent(totals.orders, totals.carts), `${plural(totals.orders, 'order')}, ${plural(totals.carts, 'cart')}`);
  set('abandoned', count(stats.abandoned_carts), '');
  document.querySelector('[data-cap]').value = Math.min(1, stats.sessions / stats.session_limit);
}
