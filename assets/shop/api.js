// The edge's API, and product data from the shop.

export const API = '/_edge/v1';

/** An error whose message a visitor can read. */
export class UserError extends Error {}

/** Messages by error type: the end of the URN in a problem document (RFC 9457). */
const MESSAGES = {
  'cart-full': 'Your cart is full. Please remove an item first.',
  'too-often': 'Too many requests. Please wait a minute and try again.',
  'sign-in': 'Please sign in first.',
  'not-started': 'The sale has not started yet. Please try again when it starts.',
  ended: 'Sorry, the sale has ended.',
  'sold-out': 'Sorry, all items are sold or reserved. Expired reservations become available again.',
  'already-bought': 'You have already bought this item. The limit is one per customer.',
  unavailable: 'This is temporarily unavailable. Please try again in a minute.',
};

/** The message for a failed call, from its problem document; a general message without one. */
export function errorMessage(problem) {
  const detail = problem?.detail ?? problem?.title;
  const sentence = detail && `${detail[0].toUpperCase()}${detail.slice(1)}.`;
  return MESSAGES[errorType(problem)] ?? sentence ?? 'Something went wrong. Please try again.';
}

/** `sold-out` of `urn:edgefront:sold-out`. */
export const errorType = (problem) => problem?.type?.split(':').pop();

/**
 * Calls the API. Resolves with its JSON, or null for an empty response; throws a UserError.
 * Retries once after a network error. A POST sends an idempotency key, so the retry has no second effect.
 */
export async function call(path, method = 'GET', body) {
  const options = { method, headers: { Accept: 'application/json' } };
  if (method === 'POST') options.headers['Idempotency-Key'] = crypto.randomUUID();
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options).catch(() => fetch(path, options));
  } catch {
    throw new UserError('No connection. Please try again.');
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new UserError(errorMessage(answer));
  return answer;
}

/** Product data for `ids`: id → card. Unknown ids are left out. */
export async function cards(ids) {
  if (ids.length === 0) return new Map();
  const { products } = await call(`/products.json?ids=${ids.map(encodeURIComponent).join(',')}`);
  return new Map(products.map((product) => [product.id, product]));
}
