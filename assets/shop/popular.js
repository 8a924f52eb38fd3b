// The most viewed products. The list has the same height before and after it loads, so nothing moves.

import { cards, edge } from './api.js';
import { cardItem, element } from './page.js';

export async function showPopular(list) {
  const products = await popularProducts().catch(() => null);
  if (products?.length) {
    list.replaceChildren(...products.map((card, index) => cardItem(card, index + 1)));
    return;
  }
  const text = products ? 'No popular products yet. View a product to add it here.' : 'We could not load popular products. Please try again later.';
  list.replaceChildren(element('li', { className: 'empty note' }, text));
}

async function popularProducts() {
  const items = await edge.popular({ limit: 10 });
  const known = await cards(items.map(({ id }) => id));
  return items.map(({ id }) => known.get(id)).filter(Boolean);
}
