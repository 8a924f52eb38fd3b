// An Express shop behind a running edgefront, which `cargo xtask test --integrations` starts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import express from 'express';

import * as forExpress from '../src/express.js';
import { Service } from '../src/index.js';
import { KEY } from './support.js';

const { EDGEFRONT_URL: url, EDGEFRONT_ORIGIN_PORT: port, EDGEFRONT_SERVICE_KEY: serviceKey } = process.env;

let cookie = '';
/** A request of the visitor, with the cookie of edgefront's session. */
async function send(path, form) {
  const options = { headers: { cookie }, redirect: 'manual', ...(form && { method: 'POST', body: new URLSearchParams(form) }) };
  const response = await fetch(url + path, options);
  const session = response.headers.getSetCookie().find((line) => line.startsWith('__Host-session='));
  if (session) [cookie] = session.split(';');
  return response;
}
const json = async (path) => (await send(`/_edge/v1${path}`)).json();

async function eventually(condition) {
  for (let end = Date.now() + 60_000; Date.now() < end;) if (await condition()) return;
  throw new Error(`never: ${condition}`);
}

test('behind edgefront, a save purges its page, a login moves the cart, and an order counts', async (t) => {
  if (!url) throw new Error('run: cargo xtask test --integrations');
  const service = new Service({ url, key: serviceKey });
  let stock = 3;
  const app = express();
  app.use(forExpress.edgefront({ key: KEY, service }), express.urlencoded());
  app.get('/products/mug', forExpress.shared({ maxAge: 60 }), (req, res) => { req.edge.item('mug'); res.send(`stock ${stock}`); });
  app.post('/stock', (req, res) => { stock -= 1; req.edge.purge({ items: ['mug'] }); res.send('saved'); });
  app.post('/cart', (req, res) => { req.edge.cart.add(req.body.id, 2); res.send('added'); });
  app.post('/login', (req, res) => { req.edge.login('1'); res.send('signed in'); });
  app.post('/checkout', (req, res) => { req.edge.order('A-1', req.edge.cartItems); res.send('bought'); });
  const server = app.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });

  const page = async () => { const response = await send('/products/mug'); return [await response.text(), response.headers.get('cache-status')]; };
  await eventually(async () => /; hit/.test((await page())[1]));
  stock = 2;
  assert.equal((await page())[0], 'stock 3', 'the page is stored');
  await send('/stock', {});
  await service.flush();
  assert.equal((await page())[0], 'stock 1');

  await send('/cart', { id: 'mug' });
  const guest = cookie;
  assert.deepEqual(await json('/session'), { user: null, guest: true, cart: { lines: 1, quantity: 2 } });
  await send('/login', {});
  assert.notEqual(cookie, guest);
  assert.deepEqual(await json('/session'), { user: '1', guest: false, cart: { lines: 1, quantity: 2 } });

  assert.equal(await (await send('/checkout', {})).text(), 'bought');
  assert.equal((await json('/cart')).quantity, 0);
  await eventually(async () => (await json('/items/mug/stats')).orders > 0);
});
