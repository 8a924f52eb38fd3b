// The most viewed products. The list has the same height before and after it loads, so nothing moves.

import { cards, edge } from './api.js';
import { cardItem, element } from './page.js';

const MAX_ITEMS = 10;

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
  const items = await edge.popular({ limit: 20 });
  const known = await cards(items.map(({ id }) => id));
  // The most viewed variant stands for its product line.
  const lines = new Map(items.map(({ id }) => known.get(id)).filter(Boolean).reverse().map((card) => [card.line, card]));
  return [...lines.values()].reverse().slice(0, MAX_ITEMS);
}
