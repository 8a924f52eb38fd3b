// The origin's side of edgefront's contract, for servers with `Request` and `Response`.

import { Edge, Keys, Refused, isClaim, isItem } from './edge.js';
import { Service } from './service.js';

export { Edge, Keys, Refused, Service };

const MAX_IDS = 100;

const plain = (status, text) => new Response(`${text}\n`, { status, headers: { 'content-type': 'text/plain', 'cache-control': 'no-store' } });

/** Wraps `handler(request, edge)`. Other requests than those of edgefront get 403, except those of the paths in `exempt`. */
export function edgefront({ key, exempt = [], service = null }, handler) {
  const keys = new Keys(key);
  return async (request, ...more) => {
    const admitted = admit(request, keys, exempt);
    if (admitted instanceof Response) return admitted;
    try {
      return finish(admitted.edge, await handler(admitted.request, admitted.edge, ...more));
    } finally {
      // A handler may throw after its commit.
      admitted.edge.sendPurges(service);
    }
  };
}

/** `{ edge, request }` with the visitor's host and scheme, or the response to a refused request. */
export function admit(request, keys, exempt = []) {
  const url = new URL(request.url);
  let edge;
  try {
    edge = Edge.read(request.headers, keys);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status !== 403 || !exempt.includes(url.pathname)) return plain(error.status, error.message);
    edge = new Edge();
  }
  if (edge.scheme !== null) url.protocol = edge.scheme;
  if (edge.host !== null) {
    url.port = '';
    url.host = edge.host;
  }
  const admitted = new Request(url, request);
  for (const name of [...admitted.headers.keys()].filter(isClaim)) admitted.headers.delete(name);
  return { edge, request: admitted };
}

/** The response with the directives. */
export function finish(edge, response) {
  const changes = edge.finish({ status: response.status, names: [...response.headers.keys()], setsCookie: response.headers.has('set-cookie') });
  if (Object.keys(changes).length === 0) return response;
  // The headers of some responses are immutable.
  const finished = new Response(response.body, response);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) finished.headers.delete(name);
    else finished.headers.set(name, value);
  }
  return finished;
}

/** The rows of a request of `ROWS_URL`. `source(ids)` resolves with rows that have an `id`. */
export async function rows(edge, url, source) {
  const { status, body } = await answerRows(edge, new URL(url).searchParams.get('ids'), source);
  return status === 200 ? Response.json(body, { headers: { 'cache-control': 'no-store' } }) : plain(status, body);
}

export async function answerRows(edge, text, source) {
  if (!edge.verified) return { status: 403, body: 'This address answers edgefront only.' };
  const ids = [...new Set((text ?? '').split(','))];
  if (ids.length > MAX_IDS || !ids.every(isItem)) return { status: 400, body: 'ids is not valid.' };
  const found = await source(ids);
  return { status: 200, body: found.filter((row) => ids.includes(String(row.id))) };
}
