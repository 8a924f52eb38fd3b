// The edge's API, and the shop's own cards.

export const API = '/_edge/v1';

/** Went wrong in a way that can be told to a visitor. */
export class Problem extends Error {}

/**
 * Calls the API. Resolves with its JSON, or null for an empty answer; throws a Problem that a visitor can read.
 * Where the connection breaks it is tried once more; a POST carries a key, by which the edge knows the second for the first.
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
    throw new Problem('No connection. Please try again.');
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Problem(answer?.detail ?? answer?.title ?? 'This did not work. Please try again.');
  return answer;
}

/** Names, prices and pictures for `ids`: id → card. Ids that the shop does not have are left out. */
export async function cards(ids) {
  if (ids.length === 0) return new Map();
  const { products } = await call(`/products.json?ids=${ids.map(encodeURIComponent).join(',')}`);
  return new Map(products.map((product) => [product.id, product]));
}
