// The handlers of fetch-style servers and of Hono. Each test runs with both.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hono } from 'hono';

import * as forHono from '../src/hono.js';
import { edgefront } from '../src/index.js';
import { api, KEY } from './support.js';

const SERVERS = {
  'a fetch-style server': edgefront,
  Hono: (options, handler) => {
    const app = new Hono();
    app.use(forHono.edgefront(options));
    app.all('*', (c) => handler(c.req.raw, c.get('edge')));
    return (request) => app.fetch(request);
  },
};

const request = () => new Request('http://127.0.0.1/', { headers: { 'edge-key': KEY, 'edge-session': 'none' } });
/** Declares itself shared, as a middleware of the shop may do. */
const page = () => new Response('', { headers: { 'cache-control': 'public, max-age=60', 'cdn-cache-control': 'max-age=60' } });
const cacheControls = ({ headers }) => [headers.get('cache-control'), headers.get('cdn-cache-control')];

for (const [name, server] of Object.entries(SERVERS)) {
  test(`${name}: a login is never declared shared`, async () => {
    const handle = server({ key: KEY }, (_, edge) => { edge.login('ada'); return page(); });
    const response = await handle(request());
    assert.deepEqual([...cacheControls(response), response.headers.get('edge-login')], ['private, no-store', null, 'ada']);
  });

  test(`${name}: a page that depends on its visitor is never declared shared`, async (t) => {
    t.mock.method(console, 'warn', () => {});
    const handle = server({ key: KEY }, (_, edge) => { edge.share(); edge.touch('the user'); return page(); });
    assert.deepEqual(cacheControls(await handle(request())), ['private, no-store', null]);
  });

  test(`${name}: the share of a page replaces its own Cache-Control`, async () => {
    const handle = server({ key: KEY }, (_, edge) => { edge.share({ maxAge: 30, stale: 10 }); return page(); });
    assert.deepEqual(cacheControls(await handle(request())), ['public, max-age=30, stale-while-revalidate=10', null]);
  });

  test(`${name}: a login keeps each cookie and header of the response once`, async () => {
    const headers = [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['vary', 'accept'], ['content-type', 'text/html']];
    const handle = server({ key: KEY }, (_, edge) => { edge.login('ada'); return new Response('', { status: 201, headers }); });
    const response = await handle(request());
    assert.deepEqual([response.status, response.headers.getSetCookie()], [201, ['a=1', 'b=2']]);
    assert.deepEqual(['vary', 'content-type'].map((header) => response.headers.get(header)), ['accept', 'text/html']);
  });

  test(`${name}: a purge is sent after the response`, async (t) => {
    const { calls, service } = await api(t);
    const handle = server({ key: KEY, service }, (_, edge) => {
      edge.purge({ items: ['mug'] });
      edge.purge({ items: ['mug'] });
      assert.equal(edge.purges.length, 2);
      return new Response('');
    });
    await handle(request());
    await service.flush();
    assert.deepEqual(calls.map(({ body }) => body), [{ items: ['mug'] }]);
  });

  test(`${name}: a purge is sent if the handler fails after it`, async (t) => {
    t.mock.method(console, 'error', () => {});
    const { calls, service } = await api(t);
    for (const failure of [new Error('after the commit'), 'after the commit']) {
      const handle = server({ key: KEY, service }, (_, edge) => { edge.purge({ items: ['mug'] }); throw failure; });
      await Promise.allSettled([handle(request())]);
      await service.flush();
    }
    assert.deepEqual(calls.map(({ body }) => body), [{ items: ['mug'] }, { items: ['mug'] }]);
  });

  test(`${name}: a purge after the response is sent at once`, async (t) => {
    const { calls, service } = await api(t);
    let late;
    const handle = server({ key: KEY, service }, (_, edge) => { late = edge; return new Response(''); });
    await handle(request());
    late.purge({ items: ['mug'] });
    await service.flush();
    assert.deepEqual(calls.map(({ body }) => body), [{ items: ['mug'] }]);
  });
}
