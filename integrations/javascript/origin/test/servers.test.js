// Real servers, checked by the conformance kit.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { getRequestListener, serve } from '@hono/node-server';
import express from 'express';
import session from 'express-session';
import { Hono } from 'hono';
import passport from 'passport';

import * as forExpress from '../src/express.js';
import * as forHono from '../src/hono.js';
import { edgefront, rows } from '../src/index.js';
import { api, contract, KEY, listen, OPTIONS, PASSWORD, ROWS, shop, USERS } from './support.js';

/** `session-unknown`, `session-none` and `session-guest` do not apply to a shop without a session of its own. */
const WITHOUT_SESSIONS = /24 hold, 0 broken, 3 not checked\n$/;

test('a fetch-style server keeps the contract', async (t) => {
  const url = await listen(t, getRequestListener(edgefront({ key: KEY }, (request, edge) => shop(request, edge, rows))));
  assert.match(await contract(url, ...OPTIONS), WITHOUT_SESSIONS);
});

test('a Hono shop keeps the contract', async (t) => {
  const app = new Hono();
  app.use(forHono.edgefront({ key: KEY, load: (id) => USERS.get(id) }));
  app.get('/products/mug', forHono.shared({ maxAge: 60 }), (c) => {
    c.get('edge').item('mug');
    return c.html(`<link rel=canonical href=${c.req.url}>`);
  });
  app.get('/account', async (c) => c.text(`Hello ${(await c.get('user')())?.name}!`));
  app.get('/mistake', forHono.shared(), async (c) => c.text(`Hello ${(await c.get('user')())?.name}!`));
  app.get('/rows', forHono.edgeRows((ids) => ROWS.filter(({ id }) => ids.includes(id))));
  app.all('*', (c) => shop(c.req.raw, c.get('edge')));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });
  const url = `http://127.0.0.1:${server.address().port}`;
  const report = await contract(url, ...OPTIONS);
  assert.match(report, /23 hold, 0 broken, 4 not checked\n$/);
  assert.match(report, /links name https:\/\/shop.example/);
  t.mock.method(console, 'warn', () => {});
  const headers = { 'edge-key': KEY, 'edge-session': 'user', 'edge-user': '1' };
  const response = await fetch(`${url}/mistake`, { headers });
  assert.deepEqual([await response.text(), response.headers.get('cache-control')], ['Hello ada!', 'private, no-store']);
});

/** Express with express-session and Passport, which keep a login of their own. */
function expressShop() {
  const app = express();
  const authenticator = new passport.Passport();
  authenticator.serializeUser((user, done) => done(null, user.id));
  authenticator.deserializeUser((id, done) => done(null, USERS.get(id)));
  app.use(forExpress.edgefront({ key: KEY }));
  app.use(session({ secret: 'a secret for tests', resave: false, saveUninitialized: false, cookie: { secure: true } }));
  app.use(authenticator.session());
  app.use(forExpress.visitor({ load: (id) => USERS.get(id) }));
  app.use(express.urlencoded());
  app.get('/', (req, res) => res.send('shop'));
  app.get('/products/mug', forExpress.shared({ maxAge: 60 }), (req, res) => {
    req.edge.item('mug');
    req.edge.tags('goods');
    res.send(`<link rel=canonical href=${req.protocol}://${req.host}${req.url}>`);
  });
  app.get('/mistake/user', forExpress.shared(), (req, res) => res.send(`Hello ${req.user?.name}`));
  app.get('/mistake/session', forExpress.shared(), (req, res) => res.send(`Hello ${req.session.name}`));
  app.get('/account', (req, res) => res.set('Cache-Control', 'private').send(`Hello ${req.user?.name}! ${req.ip}`));
  app.get('/login', (req, res) => res.send('<form method=post>'));
  app.post('/login', (req, res, next) => {
    if (req.body.password !== PASSWORD) return res.status(422).send('wrong');
    return req.logIn(USERS.get('1'), (error) => (error ? next(error) : res.redirect(303, '/')));
  });
  app.post('/logout', (req, res, next) => req.logOut((error) => (error ? next(error) : res.redirect(303, '/'))));
  app.get('/cart', (req, res) => res.set('Cache-Control', 'private').json(req.edge.cartItems));
  app.post('/cart', (req, res) => { req.edge.cart.add(req.body.id, 2); res.redirect(303, '/'); });
  app.get('/checkout', (req, res) => res.send('<form method=post>'));
  app.post('/checkout', (req, res) => { req.edge.order('A-1', req.edge.cartItems); res.redirect(303, '/'); });
  app.get('/rows', forExpress.edgeRows((ids) => ROWS.filter(({ id }) => ids.includes(id))));
  return app;
}

test('an Express shop with Passport keeps the contract', async (t) => {
  const url = await listen(t, expressShop());
  const report = await contract(url, ...OPTIONS);
  assert.match(report, /27 hold, 0 broken, 0 not checked\n$/);
  assert.match(report, /links name https:\/\/shop.example/);
});

test('Express confirms a shared page with a 304 that is shared', async (t) => {
  const url = await listen(t, expressShop());
  // `no-store` stops fetch from adding `no-cache`, with which Express would send the page again.
  const get = (headers) => fetch(`${url}/products/mug`, { cache: 'no-store', headers: { 'edge-key': KEY, 'edge-shared': '1', 'cache-control': 'max-age=0', ...headers } });
  const page = await get({});
  const confirmed = await get({ 'if-none-match': page.headers.get('etag') });
  assert.deepEqual([confirmed.status, confirmed.headers.get('cache-control')], [304, page.headers.get('cache-control')]);
  assert.match(page.headers.get('cache-control'), /^public/);
});

test('Express does not share a response that touched the session or the user', async (t) => {
  t.mock.method(console, 'warn', () => {});
  const url = await listen(t, expressShop());
  const get = (path) => fetch(url + path, { headers: { 'edge-key': KEY, 'edge-session': 'none', 'x-real-ip': '192.0.2.7' } });
  for (const kind of ['user', 'session']) assert.equal((await get(`/mistake/${kind}`)).headers.get('cache-control'), 'private, no-store', kind);
  assert.match((await get('/products/mug')).headers.get('cache-control'), /^public, max-age=60/);
  assert.match(await (await get('/account')).text(), /192\.0\.2\.7/);
});

test('Express sends the purges of a visitor who left before the response', async (t) => {
  const { calls, service } = await api(t);
  const app = express();
  let leave;
  const purged = new Promise((resolve) => {
    app.use(forExpress.edgefront({ key: KEY, service }));
    app.post('/stock', async (req, res) => {
      req.edge.purge({ items: ['before'] });
      leave();
      await once(res, 'close');
      req.edge.purge({ items: ['after'] });
      resolve();
    });
  });
  const url = await listen(t, app);
  const visitor = new AbortController();
  leave = () => visitor.abort();
  await assert.rejects(fetch(`${url}/stock`, { method: 'POST', headers: { 'edge-key': KEY }, signal: visitor.signal }), { name: 'AbortError' });
  await purged;
  await service.flush();
  assert.deepEqual(calls.flatMap(({ body }) => body.items), ['before', 'after']);
});
