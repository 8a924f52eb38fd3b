// The table of the most viewed items.

import { element, formatNumber, formatTime } from './format.js';
import { itemLinks } from './links.js';
import { cell, fill, heading, row } from './table.js';

/** The change of a rank: an arrow, and text for screen readers. */
function rankChange({ rank, before }) {
  const [arrow, kind, text] = before === null ? ['new', 'up', 'new in the top 100']
    : before > rank ? [`▲ ${before - rank}`, 'up', `up by ${before - rank}`]
      : before < rank ? [`▼ ${rank - before}`, 'down', `down by ${rank - before}`]
        : ['=', 'same', 'unchanged'];
  const visible = element('span', { className: kind }, arrow);
  visible.setAttribute('aria-hidden', 'true');
  return [visible, element('span', { className: 'visually-hidden' }, text)];
}

/** `since` is the second of the earlier ranks; null if there are none yet. */
export function showItems({ items, since }) {
  document.querySelector('[data-since-rank]').textContent = since === null ? 'in the last hour (not known yet)' : `since ${formatTime(since).slice(0, 5)}`;
  fill('items', items.map((item) => row(
    cell(formatNumber(item.rank + 1), 'number'),
    heading(itemLinks(item.id)),
    cell(formatNumber(item.views, 1), 'number'),
    cell(since === null ? '–' : rankChange(item)),
  )));
}
