// Why a URL is cached, or is not, in words.

import { count, element, plural, span } from './words.js';

const WHY = {
  fresh: ({ age, ttl }) => `A visitor gets the stored page. It is ${span(age)} old and stays fresh for ${span(ttl)}.`,
  stale: ({ age }) => `A visitor gets the stored page, which is ${span(age)} old and stale: the first who comes has it rendered anew behind the answer.`,
  absent: () => 'Nothing is stored now. The next visitor has it rendered, and then it is stored.',
  unpopular: ({ rank }) => (rank === null
    ? 'Its item was not viewed lately, so it does not rank. Its first view changes that.'
    : 'Its item ranks too low: only pages of the most viewed items are stored (PAGE_RANK_LIMIT).'),
  'no-item': () => 'It names no item by ITEM_ROUTES, and the shop has not said that it may be stored: until it does, every request goes there.',
  'no-page': () => 'It is no address of a page of this shop.',
  unstorable: () => 'The shop was asked for it lately, and its answer is one that no cache for everybody may store.',
  dynamic: () => 'The parameter _ says that the page is made for each request anew.',
  parameters: () => 'It has a parameter that is given twice or is not known: any number of pages could be stored under such addresses.',
};

/** The elements that tell what `GET /cache` said. */
export function explain(told) {
  const { cacheable, why, item, rank, url, key, bytes, tags } = told;
  const verdict = !cacheable ? 'No, it is not cached' : why === 'absent' ? 'It may be cached, and is not now' : 'Yes, it is cached';
  const facts = [
    ['Item', item ?? undefined],
    ['Rank', rank === undefined ? undefined : rank === null ? 'none' : `${count(rank + 1)}, 1 being the most viewed`],
    ['Stored as the answer to', url],
    ['Redis key', key],
    ['Size', bytes === undefined ? undefined : plural(bytes, 'byte')],
    ['Tags', tags?.length > 0 ? tags.join(', ') : undefined],
  ].filter(([, value]) => value !== undefined);
  return [
    element('p', { className: `verdict ${cacheable ? 'yes' : 'no'}` }, `${verdict}.`),
    element('p', {}, WHY[why]?.(told) ?? `The reason is called ${why}.`),
    element('dl', {}, ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)))),
  ];
}
