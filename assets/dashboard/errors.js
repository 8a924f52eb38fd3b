// The tables of errors: by route and cause, and the latest ones.

import { element, formatNumber, pastTime } from './format.js';

const cell = (content, className = '') => element('td', { className }, content);

/** Kinds of errors that the table shows. */
const MAX_KINDS = 10;

/** The names of routes and causes for people. */
const routeName = (route) => (route === 'storefront' ? 'Storefront' : route.replace('/_edge/v1', 'API '));
const causeName = (cause) => (cause === 'origin' ? 'the origin’s own answer' : cause.replaceAll('-', ' '));
const statusCell = (status) => cell(status, status >= 500 ? 'number bad' : 'number');

function fill(name, rows) {
  document.querySelector(`[data-${name}]`).replaceChildren(...rows);
  document.querySelector(`[data-empty=${name}]`).hidden = rows.length > 0;
}

export function showErrors({ errors, latest_errors: latest, now }) {
  fill('errors', errors.slice(0, MAX_KINDS).map(({ status, route, cause, total }) => element('tr', {},
    statusCell(status),
    element('th', { scope: 'row' }, routeName(route)),
    cell(causeName(cause)),
    cell(formatNumber(total), 'number'))));
  fill('latest-errors', latest.slice(0, MAX_KINDS).map(({ at, status, route, reason }) => element('tr', {},
    cell(pastTime(at, now)),
    statusCell(status),
    element('th', { scope: 'row' }, routeName(route)),
    cell(reason))));
}
