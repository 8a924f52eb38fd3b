// Explains whether a URL is cached, and why.

import { element, formatDuration, formatNumber, plural } from './format.js';

/** Explanations by the field `why` of `GET /cache`. */
const REASONS = {
  fresh: ({ age, ttl }) => `Visitors get the cached page. It is ${formatDuration(age)} old and stays fresh for ${formatDuration(ttl)}.`,
  stale: ({ age }) => `Visitors get the cached page, which is stale (${formatDuration(age)} old). The next request refreshes it in the background.`,
  absent: () => 'The page is not in the cache yet. The next request renders and stores it.',
  unpopular: ({ rank }) => (rank === null
    ? 'The item has no recent views, so it has no rank. The next view ranks it.'
    : 'The rank of the item is too low: only pages of the most viewed items are stored (PAGE_RANK_LIMIT).'),
  'no-item': () => 'The URL matches no item in ITEM_ROUTES, and the origin has not marked the page as cacheable. Every request goes to the origin.',
  'no-page': () => 'The URL is not a page of this shop.',
  unstorable: () => 'The latest response of the origin must not be stored by a shared cache.',
  dynamic: () => 'The parameter _ disables caching for the request.',
  parameters: () => 'The URL has an unknown or repeated parameter. Such URLs are not cached, because there could be any number of them.',
};

/** Elements that show a result of `GET /cache`. */
export function explain(result) {
  const { cacheable, why, item, rank, url, key, bytes, tags } = result;
  const verdict = !cacheable ? 'Not cacheable' : why === 'absent' ? 'Cacheable, not cached yet' : 'Cached';
  const facts = [
    ['Item', item ?? undefined],
    ['Rank', rank === undefined ? undefined : rank === null ? 'none' : `${formatNumber(rank + 1)} (1 is the most viewed)`],
    ['Cached as', url],
    ['Redis key', key],
    ['Size', bytes === undefined ? undefined : plural(bytes, 'byte')],
    ['Tags', tags?.length > 0 ? tags.join(', ') : undefined],
  ].filter(([, value]) => value !== undefined);
  return [
    element('p', { className: `verdict ${cacheable ? 'yes' : 'no'}` }, `${verdict}.`),
    element('p', {}, REASONS[why]?.(result) ?? `Reason: ${why}.`),
    element('dl', {}, ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)))),
  ];
}
