import assert from 'node:assert/strict';
import { test } from 'node:test';

import { edgefront, Service } from '../src/index.js';
import { KEY, listen } from './support.js';

/** edgefront's service API. It answers with the next of `statuses`, then with 200. */
async function api(t, statuses = []) {
  const calls = [];
  const url = await listen(t, async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    calls.push({ method: req.method, path: req.url, key: req.headers.authorization, body: body && JSON.parse(body) });
    const status = statuses.shift() ?? 200;
    res.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('{}');
  });
  return { calls, url, service: new Service({ url, key: 'the service key', pauses: [0, 0, 0] }) };
}

const quiet = (t) => ['error', 'warn'].map((name) => t.mock.method(console, name, () => {}));

test('purges of one turn are one call', async (t) => {
  const { calls, service } = await api(t);
  service.purge({ items: ['mug', 42] });
  service.purge({ items: ['mug'], tags: ['kitchen'], urls: ['/about'] });
  await service.flush();
  assert.deepEqual(calls, [{
    method: 'POST', path: '/_edge/v1/purge', key: 'Bearer the service key', body: { items: ['mug', '42'], tags: ['kitchen'], urls: ['/about'] },
  }]);
});

test('a failed purge is retried, in a bounded way', async (t) => {
  const [errors] = quiet(t);
  const { calls, service } = await api(t, [503, 429, 200, 503, 503, 503, 503, 503]);
  service.purge({ items: ['mug'] });
  await service.flush();
  assert.equal(calls.length, 3);
  service.purge({ items: ['mug'] });
  await service.flush();
  assert.equal(calls.length, 7);
  assert.equal(errors.mock.callCount(), 1);
});

test('a refusal is not retried, and no redirect gets the key', async (t) => {
  quiet(t);
  for (const status of [401, 302]) {
    const { calls, service } = await api(t, [status]);
    service.purge({ items: ['mug'] });
    await service.flush();
    assert.equal(calls.length, 1);
  }
});

test('an invalid name is logged, many names are split, too many purge all pages', async (t) => {
  const [errors] = quiet(t);
  const { calls, service } = await api(t);
  service.purge({ items: ['a/b', ...Array.from({ length: 1_000 }, (_, i) => String(i).padStart(60, '0'))] });
  await service.flush();
  assert.equal(errors.mock.callCount(), 1);
  assert.ok(calls.length > 1 && new Set(calls.flatMap(({ body }) => body.items)).size === 1_000);
  service.purge({ items: Array.from({ length: 6_000 }, (_, i) => i) });
  await service.flush();
  assert.deepEqual(calls.at(-1).body, { all: true, soft: true });
});

test('a purge of a request is sent after its response', async (t) => {
  const { calls, service } = await api(t);
  const handler = edgefront({ key: KEY, service }, (_, edge) => {
    edge.purge({ items: ['mug'] });
    edge.purge({ items: ['mug'] });
    assert.equal(calls.length, 0);
    return new Response('');
  });
  await handler(new Request('http://127.0.0.1/', { headers: { 'edge-key': KEY } }));
  await service.flush();
  assert.deepEqual(calls.map(({ body }) => body), [{ items: ['mug'] }]);
});
