// Explains whether a URL is cached, and why. Purges it with one click.

import { RequestError, Unavailable, call, hasKey } from './api.js';
import { element, formatDuration, formatNumber, plural } from './format.js';
import { itemLinks, linked, pageLink } from './links.js';
import { act } from './notice.js';
import { purge } from './purge.js';
import { showProblem } from './problem.js';

const form = document.querySelector('[data-explain]');
const field = form.querySelector('input');
const problem = document.querySelector('[data-explain-problem]');
const verdictPlace = document.querySelector('[data-verdict]');
const factsPlace = document.querySelector('[data-facts]');

const SHARE = 'If all visitors without cookies get the same page, add its path to PATHS_SHARED';

/** Explanations by the field `why` of `GET /cache`: the cause and its remedy. */
const REASONS = {
  fresh: ({ age, ttl }) => `Visitors get the cached page. It is ${formatDuration(age)} old and stays fresh for ${formatDuration(ttl)}.`,
  stale: ({ age }) => `Visitors get the cached page, which is stale (${formatDuration(age)} old). The next request refreshes it in the background.`,
  absent: () => 'The page is not in the cache yet. The next request renders and stores it.',
  unpopular: ({ rank }) => `${rank === null
    ? 'The item has no recent views, so it has no rank.'
    : 'The rank of the item is too low: only pages of the most viewed items are stored (PAGE_RANK_LIMIT).'} The page states no freshness. Views raise the rank; Cache-Control: public, max-age=… stores the page without them.`,
  'no-item': () => 'The URL matches no item in ITEM_ROUTES, and the page states no freshness. ' + SHARE + ', or let the shop send Cache-Control: public, max-age=….',
  parameters: () => 'The URL has an unknown or repeated parameter, and the page states no freshness. If the page does not depend on the parameter, add it to QUERY_IGNORED. Otherwise add it to QUERY_KEPT, for an item with its values.',
  dynamic: () => 'The parameter _ disables caching for the request.',
  path: () => 'The path is in PATHS_PERSONAL or CHOICES, so each visitor gets their own page.',
  personal: ({ cause }) => (/ /.test(cause) ? 'The page or a header of the response contains the id of a session. Let the shop keep the id in cookies only.' : cause ? `The path is in ${cause}: the shop gets the visitor's cart or reservation, so each visitor gets their own page.` : 'The response is for one visitor: it carries a directive (Edge-*) for a session or a cart.'),
  'set-cookie': () => 'The response sets a cookie. Add the cookie to COOKIES_DROPPED if the page works without it.',
  private: () => 'The shop marks the page as private. ' + SHARE + '.',
  'no-store': () => 'The shop forbids storing the page (no-store). ' + SHARE + '.',
  'no-cache': () => 'The shop demands a check of each use (no-cache), and the page has neither ETag nor Last-Modified. ' + SHARE + '.',
  'not-fresh': () => 'The response is stale on arrival. ' + SHARE + '.',
  status: ({ cause }) => (/ 404$/.test(cause) ? 'The shop has no page at this URL.' : / 3\d\d$/.test(cause) ? 'The shop redirects this URL.' : 'The shop answers with an error.') + ' Without stated freshness, only pages with status 200 are stored.',
  refused: ({ cause }) => `The shop refused a shared render (${cause}) and accepted the visitor's own request. Perhaps it needs the visitor's address or a cookie: let it accept requests with Edge-Shared: 1, or add the path to PATHS_PERSONAL.`,
  encoding: () => 'The shop compresses the response although edgefront asks for an uncompressed one.',
  vary: () => 'The page varies on a request header that shared renders do not have. List its values in HEADERS_NORMALIZED, or name the header in HEADERS_VARIED or PAGE_FORWARD_HEADERS. For Vary: Cookie, write rules for the cookies.',
  'vary-star': () => 'The page has Vary: *, so no other request may get it.',
  'too-large': () => 'The page is larger than PAGE_MAX_BYTES.',
  busy: () => 'The isolate was rendering and storing as many pages as its memory allows. Explain the URL again.',
  esi: () => 'The ESI of the page cannot be processed. The log names the cause.',
  unstorable: () => 'The latest response of the shop must not be stored by a shared cache.',
  'origin-down': () => 'The page is not cached, and the shop does not respond. Check ORIGIN_URL and the shop.',
};

/** Shows the explanation of what the field contains. Returns the promise of it. */
async function explain() {
  const text = field.value.trim();
  try {
    const url = ownUrl(text);
    const result = await call(`/cache?url=${encodeURIComponent(url)}`);
    // The field may have changed meanwhile.
    if (field.value.trim() === text) show(result);
  } catch (error) {
    if (!(error instanceof RequestError || error instanceof Unavailable)) throw error;
    clear();
    showProblem(field, problem, error.message);
  }
}

/** The absolute URL of a page of this shop. */
function ownUrl(text) {
  if (!text) throw new RequestError('Enter a URL or a path such as /products/mug.');
  const url = URL.parse(text, location.origin);
  if (url?.host !== location.host || /^\/_edge(\/|$)/.test(url.pathname)) {
    throw new RequestError(`This is not a page of this shop. Enter a path such as /products/mug, or a URL of ${location.host}.`);
  }
  return location.origin + url.pathname + url.search;
}

function show(result) {
  const { cacheable, why, cause, item, rank, url, key, bytes, tags } = result;
  const verdict = !cacheable ? 'Not cached' : why === 'absent' ? 'Cacheable, not cached yet' : 'Cached';
  const reason = REASONS[why]?.(result) ?? `Reason: ${why}.`;
  verdictPlace.replaceChildren(
    element('p', { className: `verdict ${cacheable ? 'yes' : 'no'}` }, `${verdict}.`),
    element('p', {}, reason),
  );
  const page = url && new URL(url);
  const facts = [
    ['Cause', /: |^status/.test(cause) ? [element('code', {}, cause)] : []],
    ['Page', page ? [url, ' ', pageLink(page.href, page.pathname)] : []],
    ['Item', item ? itemLinks(item) : []],
    ['Rank', rank === undefined || !item ? [] : [rank === null ? 'none' : `${formatNumber(rank + 1)} (1 is the most viewed)`]],
    ['Redis key', key ? [element('code', {}, key)] : []],
    ['Size', bytes === undefined ? [] : [plural(bytes, 'byte')]],
    ['Tags', tags?.length > 0 ? [tags.join(', ')] : []],
  ].filter(([, value]) => value.length > 0);
  const list = element('dl', {}, ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, ...value))));
  factsPlace.replaceChildren(list, element('div', { className: 'buttons' }, ...purgeButtons(result)));
  showProblem(field, problem, '');
}

/** The purges that concern the explained page. */
function purgeButtons({ url, item, tags = [], ttl }) {
  if (!url) return [];
  const button = (label, what, soft) => {
    const created = element('button', { type: 'button' }, label);
    created.dataset.key = `purge:${label}`;
    created.addEventListener('click', () => act(created, () => purge(what, { soft })));
    return created;
  };
  return [
    ...(ttl > 0 ? [button('Mark as stale', { urls: [url] }, true)] : []),
    ...(item ? [button(`Purge item ${item}`, { items: [item] }, false)] : []),
    ...tags.map((tag) => button(`Purge tag ${tag}`, { tags: [tag] }, false)),
  ];
}

function clear() {
  verdictPlace.replaceChildren();
  factsPlace.replaceChildren();
  showProblem(field, problem, '');
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  explain();
});

field.addEventListener('input', () => {
  if (!field.value.trim()) clear();
});

document.querySelector('[data-purge-url]').addEventListener('click', ({ currentTarget: button }) => {
  let url;
  try {
    url = ownUrl(field.value.trim());
  } catch (error) {
    clear();
    return showProblem(field, problem, error.message);
  }
  showProblem(field, problem, '');
  act(button, () => purge({ urls: [url] }));
});

/** Explains the URL of the page's address, if it has one. */
export function explainLinked() {
  const url = linked('explain');
  if (url === null || !hasKey()) return;
  field.value = url;
  field.focus();
  explain();
}

document.addEventListener('forget', () => {
  form.reset();
  clear();
});
addEventListener('hashchange', explainLinked);
document.addEventListener('purged', () => {
  if (verdictPlace.childElementCount > 0) explain();
});
