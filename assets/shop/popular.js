// What is viewed most at this moment. The list is as high before as after, so nothing moves.

import { API, call, cards } from './api.js';
import { cardItem, element } from './page.js';

export async function showPopular(list) {
  const items = await popular().catch(() => null);
  if (items?.length) {
    list.replaceChildren(...items.map((card, index) => cardItem(card, index + 1)));
    return;
  }
  const text = items ? 'Nobody has looked at anything yet. Whatever you open now leads the list.' : 'The list cannot be reached just now.';
  list.replaceChildren(element('li', { className: 'empty note' }, text));
}

async function popular() {
  const { items } = await call(`${API}/popular?limit=10`);
  const known = await cards(items.map(({ id }) => id));
  return items.map(({ id }) => known.get(id)).filter(Boolean);
}
