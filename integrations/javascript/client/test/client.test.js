import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';

import { createClient, EdgeError } from '../src/index.js';

/** A server that records requests and answers with `[status, body]`. */
async function api(t, answer) {
  const calls = [];
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    calls.push({ method: req.method, url: req.url, key: req.headers['idempotency-key'], body: body && JSON.parse(body) });
    const [status, json] = answer(calls.length);
    if (status === 0) { req.socket.destroy(); return; }
    res.writeHead(status, { 'content-type': 'application/json', date: 'Thu, 01 Jan 2026 00:00:00 GMT' });
    res.end(json === null ? undefined : JSON.stringify(json));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { calls, client: createClient({ base: `http://127.0.0.1:${server.address().port}/_edge/v1` }) };
}

test('the client is smaller than 2 KB', () => {
  const { outputFiles: [file] } = buildSync({
    entryPoints: [new URL('../src/index.js', import.meta.url).pathname], bundle: true, minify: true, format: 'esm', target: 'es2023', write: false,
  });
  const bytes = gzipSync(file.contents, { level: 9 }).length;
  console.log(`@edgefront/client: ${bytes} bytes, minified and gzipped`);
  assert.ok(bytes < 2_000, `${bytes} bytes`);
});

test('each call names its route', async (t) => {
  const { calls, client } = await api(t, () => [200, { items: [], sessions: [], rows: {} }]);
  await client.session();
  await client.addToCart('mug', 2);
  await client.setInCart('a~b', 3);
  await client.popular({ limit: 10 });
  await client.related('mug', { by: 'viewed' });
  await client.signOutDevices({ exceptCurrent: true });
  const { now } = await client.rows(['a', 'b']);
  assert.equal(now, Date.parse('2026-01-01T00:00:00Z'));
  assert.deepEqual(calls.map(({ method, url, body }) => [method, url.replace('/_edge/v1', ''), body]), [
    ['GET', '/session', ''],
    ['POST', '/cart/items', { id: 'mug', quantity: 2 }],
    ['PUT', '/cart/items/a~b', { quantity: 3 }],
    ['GET', '/popular?limit=10', ''],
    ['GET', '/items/mug/related?by=viewed', ''],
    ['DELETE', '/sessions?except=current', ''],
    ['GET', '/rows?ids=a,b', ''],
  ]);
});

test('a problem document is an EdgeError', async (t) => {
  const { client } = await api(t, () => [409, { type: 'urn:edgefront:sold-out', status: 409, title: 'Sold out', detail: 'every piece is sold' }]);
  await assert.rejects(client.reserve('mug'), (error) => {
    assert.ok(error instanceof EdgeError);
    assert.deepEqual([error.type, error.status, error.message], ['sold-out', 409, 'every piece is sold']);
    return true;
  });
});

test('a lost response is requested again with the same idempotency key', async (t) => {
  const { calls, client } = await api(t, (count) => (count === 1 ? [0] : [200, { items: [], lines: 0, quantity: 0 }]));
  await client.addToCart('mug');
  assert.equal(calls.length, 2);
  assert.ok(calls[0].key && calls[0].key === calls[1].key);
});

test('without a connection the error is offline', async (t) => {
  const { client } = await api(t, () => [0]);
  await assert.rejects(client.session(), { type: 'offline', status: 0 });
});

test('an empty response is null', async (t) => {
  const { client } = await api(t, () => [204, null]);
  assert.equal(await client.signOut(), null);
});
