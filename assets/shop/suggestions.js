// Suggestions below a product: products that other customers bought, and the visitor's recently viewed products. Empty
// sections stay hidden. All sections appear at once, below the rest of the page.

import { cards, edge } from './api.js';
import { cardItem, element, picture } from './page.js';

const MAX_ITEMS = 8;
/** Shares below this would show as 0%. */
const MIN_SHARE = 0.005;

export async function showSuggestions(container) {
  const id = container.dataset.suggestions;
  const nothing = () => [];
  const [bought, viewed, recent] = await Promise.all([
    edge.related(id, { by: 'bought', limit: MAX_ITEMS }).catch(nothing),
    edge.related(id, { by: 'viewed', limit: MAX_ITEMS }).catch(nothing),
    edge.recent().catch(nothing),
  ]);
  const others = recent.filter((recentId) => recentId !== id).slice(0, MAX_ITEMS).map((recentId) => ({ id: recentId }));
  const ids = new Set([...bought, ...viewed, ...others].map((item) => item.id));
  const known = await cards([...ids]).catch(() => new Map());
  const show = (name, items, createItem) => {
    const section = container.querySelector(`[data-${name}]`);
    const created = items.filter((item) => known.has(item.id)).map((item) => createItem(known.get(item.id), item));
    section.querySelector('ul').replaceChildren(...created);
    section.hidden = created.length === 0;
  };
  show('bought', bought, (card) => cardItem(card));
  show('viewed', viewed.filter(({ share }) => share >= MIN_SHARE), (card, { share }) => shareItem(card, share, card.id === id));
  show('recent', others, (card) => cardItem(card));
}

/** "43% [bar] Enamel Mug". `share` is 0 to 1. */
function shareItem(card, share, isCurrent) {
  const bar = element('span', { className: 'bar' });
  bar.style.setProperty('--share', share);
  return element('li', {}, element('a', { href: `/products/${encodeURIComponent(card.id)}` },
    picture(card),
    element('span', { className: 'name' }, isCurrent ? `${card.name} (this product)` : card.name),
    element('span', { className: 'numeral' }, `${Math.round(share * 100)}%`),
    bar));
}
