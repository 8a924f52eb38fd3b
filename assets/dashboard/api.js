// The service's part of the API. The key stays in this tab's session storage and is sent to this origin only.

const API = '/_edge/v1';
const STORAGE_KEY = 'edgefront.service-key';

/** The operator can correct the request. */
export class RequestError extends Error {}
/** The service key is wrong. */
export class WrongKey extends RequestError {}
/** The API is unavailable; a retry may succeed. */
export class Unavailable extends Error {}

export const hasKey = () => sessionStorage.getItem(STORAGE_KEY) !== null;
export const forgetKey = () => sessionStorage.removeItem(STORAGE_KEY);

export function setKey(text) {
  const key = text.trim();
  if (!key) throw new RequestError('Enter the service key.');
  // A header cannot contain other characters.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new RequestError('The key contains a space or a character outside ASCII. Check the key.');
  sessionStorage.setItem(STORAGE_KEY, key);
}

/**
 * Sends a request; `body` makes it a PUT or POST with JSON. Resolves with the response's JSON, or null without a body.
 * Throws RequestError (or WrongKey) or Unavailable with a message for the operator.
 */
export async function call(path, { method = 'GET', body, signal } = {}) {
  const headers = { Accept: 'application/json', Authorization: `Bearer ${sessionStorage.getItem(STORAGE_KEY)}` };
  if (body) headers['Content-Type'] = 'application/json';
  let response;
  let answer;
  try {
    // Longer than the Redis timeout, so that edgefront reports a slow Redis itself.
    const timeout = AbortSignal.timeout(15_000);
    response = await fetch(API + path, {
      method, headers, cache: 'no-store', body: body && JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    answer = response.status === 204 ? null : await response.json();
  } catch {
    throw new Unavailable(response ? `edgefront sent an invalid response (status ${response.status}).` : 'edgefront does not respond.');
  }
  if (response.ok) return answer;
  if (response.status === 401) {
    throw new WrongKey(answer.detail?.includes('SERVICE_KEY') ? 'SERVICE_KEY is not set. Set it to open the dashboard.' : 'The service key is incorrect. Check SERVICE_KEY.');
  }
  if (response.status === 503) throw new Unavailable('Redis does not respond.');
  if (response.status >= 500) throw new Unavailable(`edgefront failed (status ${response.status}).`);
  const detail = answer.detail ?? answer.title;
  throw new RequestError(`${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`);
}
