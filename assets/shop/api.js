// The edge's API, and product data from the shop.

import { createClient, EdgeError } from '../../integrations/javascript/client/src/index.js';

export { createClient, EdgeError };

export const edge = createClient();

/** Calls of the shop itself. */
const shop = createClient({ base: '' });

/** Messages by the type of an EdgeError. */
const MESSAGES = {
  'cart-full': 'Your cart is full. Please remove an item first.',
  'too-often': 'Too many requests. Please wait a minute and try again.',
  'sign-in': 'Please sign in first.',
  'not-started': 'The sale has not started yet. Please try again when it starts.',
  ended: 'Sorry, the sale has ended.',
  'sold-out': 'Sorry, all items are sold or reserved. Expired reservations become available again.',
  'already-bought': 'You have already bought this item. The limit is one per customer.',
  offline: 'No connection. Please try again.',
  unavailable: 'This is temporarily unavailable. Please try again in a minute.',
};

/** The message that a visitor can read for an EdgeError. */
export function errorMessage({ type, detail }) {
  // Details of the shop end with a full stop, details of the edge do not.
  const sentence = detail && `${detail[0].toUpperCase()}${detail.slice(1).replace(/\.$/, '')}.`;
  return MESSAGES[type] ?? sentence ?? 'Something went wrong. Please try again.';
}

/** Changes the cart by the shop, which checks the stock. Resolves with the changed cart. Throws an EdgeError. */
export async function changeCart(op, id, quantity) {
  const body = new URLSearchParams({ op, id, quantity });
  const answer = await fetch('/cart', { method: 'POST', headers: { accept: 'application/json' }, body, keepalive: true }).catch((error) => {
    throw new EdgeError({ type: 'offline' }, error);
  });
  const content = await answer.json().catch(() => null);
  if (!answer.ok || !content) throw new EdgeError(content ?? { type: 'unavailable', status: answer.status });
  return content;
}

/** Product data for `ids`: id → card. Unknown ids are left out. */
export async function cards(ids) {
  if (ids.length === 0) return new Map();
  const { products } = await shop.request(`/products.json?ids=${ids.map(encodeURIComponent).join(',')}`);
  return new Map(products.map((product) => [product.id, product]));
}
