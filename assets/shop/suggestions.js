// Below a product: what else was bought, and what this visitor has looked at. A section that has nothing to show stays hidden, and all of
// them appear at once, below everything else.

import { API, call, cards } from './api.js';
import { cardItem, element, picture } from './page.js';

const AT_MOST = 8;

export async function showSuggestions(place) {
  const id = place.dataset.suggestions;
  const related = `${API}/items/${encodeURIComponent(id)}/related`;
  const nothing = () => ({ items: [] });
  const [bought, viewed, recent] = await Promise.all([
    call(`${related}?by=bought&limit=${AT_MOST}`).catch(nothing),
    call(`${related}?by=viewed&limit=${AT_MOST}`).catch(nothing),
    call(`${API}/recent`).catch(nothing),
  ]);
  const others = recent.items.filter((seen) => seen !== id).slice(0, AT_MOST).map((seen) => ({ id: seen }));
  const ids = new Set([...bought.items, ...viewed.items, ...others].map((item) => item.id));
  const known = await cards([...ids]).catch(() => new Map());
  const show = (name, items, draw) => {
    const section = place.querySelector(`[data-${name}]`);
    const drawn = items.filter((item) => known.has(item.id)).map((item) => draw(known.get(item.id), item));
    section.querySelector('ul').replaceChildren(...drawn);
    section.hidden = drawn.length === 0;
  };
  show('bought', bought.items, (card) => cardItem(card));
  show('viewed', viewed.items.filter(({ share }) => share >= 0.005), (card, { share }) => shareItem(card, share, card.id === id));
  show('recent', others, (card) => cardItem(card));
}

/** "43 % [bar] Enamel Mug". `share` is 0 to 1. */
function shareItem(card, share, isThis) {
  const bar = element('span', { className: 'bar' });
  bar.style.setProperty('--share', share);
  return element('li', {}, element('a', { href: `/products/${encodeURIComponent(card.id)}` },
    picture(card),
    element('span', { className: 'name' }, isThis ? `${card.name} (this)` : card.name),
    element('span', { className: 'numeral' }, `${Math.round(share * 100)} %`),
    bar));
}
