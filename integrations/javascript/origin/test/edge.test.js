import assert from 'node:assert/strict';
import { test } from 'node:test';

import { admit, Edge, finish, Keys, Refused } from '../src/index.js';
import { KEY } from './support.js';

const keys = new Keys(KEY);
const visitor = (headers = {}) => Edge.read(Object.entries({ 'edge-key': KEY, ...headers }), keys);
const refused = (status, headers) => assert.throws(() => Edge.read(headers, keys), (error) => error instanceof Refused && error.status === status);

test('only the right key is accepted', () => {
  for (const key of ['', KEY.slice(0, -1), `${KEY}x`, KEY.toUpperCase(), `${KEY}, ${KEY}`, 'ü'.repeat(13)]) {
    refused(403, [['edge-key', key], ['edge-session', 'user'], ['edge-user', 'ada']]);
  }
  refused(403, []);
  assert.ok(new Keys(['the new key of the origin', KEY]).match(KEY));
  for (const key of ['', 'short', undefined, []]) assert.throws(() => new Keys(key), /16 characters/);
});

test('another spelling, or a second header, is not believed', () => {
  const edge = visitor({ 'edge-session': 'none', edge_user: 'ada', edge_session: 'user' });
  assert.deepEqual([edge.session, edge.user], ['none', null]);
  refused(403, [['edge-key', KEY], ['Edge-Key', KEY]]);
  refused(403, [['edge-key', KEY], ['edge-session', 'user'], ['edge-user', 'a'], ['edge-user', 'b']]);
});

test('the handler gets no claim of a request without the key', () => {
  const request = new Request('http://127.0.0.1/open', { headers: { 'edge-user': 'ada', edge_user: 'ada', 'x-forwarded-host': 'forged.invalid', 'x-real-ip': '::1' } });
  const { edge, request: admitted } = admit(request, keys, ['/open']);
  assert.deepEqual([edge.verified, [...admitted.headers.keys()], admitted.url], [false, [], 'http://127.0.0.1/open']);
});

test('values that break the contract are refused', () => {
  for (const headers of [
    { 'edge-session': 'admin' }, { 'edge-session': 'user' }, { 'edge-session': 'user', 'edge-user': 'ada, bob' },
    { 'edge-cart': '[]' }, { 'edge-cart': '{"a/b":1}' }, { 'edge-cart': '{"mug":"2"}' }, { 'edge-reservation': 'x' },
  ]) refused(400, Object.entries({ 'edge-key': KEY, ...headers }));
});

test('a shared render has no visitor and no directive about one', () => {
  const edge = visitor({ 'edge-shared': '1', 'edge-session': 'user', 'edge-user': 'ada', 'edge-cart': '{"mug":2}' });
  assert.deepEqual([edge.shared, edge.session, edge.user, edge.cartItems], [true, null, null, null]);
  edge.login('ada');
  edge.cart.add('mug');
  edge.item('mug');
  assert.deepEqual(edge.directives(), { 'edge-item': 'mug' });
});

test('values that edgefront would ignore are errors', () => {
  for (const call of [
    (edge) => edge.login('a\r\nEdge-Login: b'), (edge) => edge.logout({ user: 'a,b' }), (edge) => edge.item('a/b'), (edge) => edge.item('mug\n'), (edge) => edge.tags('a,b'),
    (edge) => edge.tags(...Array.from({ length: 33 }, (_, i) => `t${i}`)), (edge) => edge.cart.add('mug', 0), (edge) => edge.cart.add('mug', 1.5),
    (edge) => edge.order('A 1', { mug: 1 }), (edge) => edge.order('A-1', {}),
  ]) {
    const edge = visitor();
    assert.throws(() => call(edge), TypeError);
    assert.deepEqual(edge.directives(), {});
  }
});

test('directives are one line each', () => {
  const edge = visitor({ 'edge-session': 'none' });
  edge.order('A-1', { mug: 2 });
  edge.cart.set('mug', 0);
  edge.logout();
  edge.login(7);
  assert.deepEqual(edge.directives(), {
    'edge-login': '7', 'edge-cart': '[{"op":"set","id":"mug","quantity":0}]', 'edge-order': '{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}',
  });
});

test('an order may leave the cart alone', () => {
  const edge = visitor();
  edge.order('A-1', { mug: 1 }, undefined, { inCart: false });
  assert.deepEqual(edge.directives(), { 'edge-order': '{"order_id":"A-1","items":[{"id":"mug","quantity":1}],"in_cart":false}' });
});

test('a logout may name a user, and then wins over a login', () => {
  const edge = visitor({ 'edge-session': 'user', 'edge-user': 'ada' });
  edge.logout({ user: 7 });
  assert.deepEqual(edge.directives(), { 'edge-logout': 'user=7' });
  // edgefront would execute the login only, and the sessions of the user would stay.
  edge.login(7);
  assert.deepEqual(edge.directives(), { 'edge-logout': 'user=7' });
  edge.logout();
  assert.deepEqual(edge.directives(), { 'edge-login': '7' });
});

test("a logout of the visitor's user includes the visitor's session", () => {
  const edge = visitor({ 'edge-session': 'user', 'edge-user': 'ada' });
  edge.logout({ user: 'ada' });
  edge.logout();
  assert.deepEqual(edge.directives(), { 'edge-logout': 'user=ada' });
});

test('a response of one visitor is not shared', (t) => {
  t.mock.method(console, 'warn', () => {});
  const share = (prepare, response = new Response('')) => {
    const edge = visitor({ 'edge-session': 'none' });
    edge.share({ maxAge: 60, stale: 30 });
    prepare(edge);
    return finish(edge, response).headers.get('cache-control');
  };
  assert.equal(share(() => {}), 'public, max-age=60, stale-while-revalidate=30');
  assert.equal(share((edge) => edge.touch('the user')), 'private, no-store');
  assert.equal(share((edge) => edge.cart.add('mug')), 'private, no-store');
  assert.equal(share(() => {}, new Response('', { headers: { 'set-cookie': 'a=b' } })), 'private, no-store');
  assert.equal(share(() => {}, new Response('', { status: 500 })), 'private, no-store');
});

test('a 304 confirms that a page is shared, unless it belongs to one visitor', (t) => {
  t.mock.method(console, 'warn', () => {});
  for (const [cause, expected] of [[null, 'public, max-age=60, stale-while-revalidate=30'], ['the user', 'private, no-store']]) {
    const edge = visitor({ 'edge-session': 'none' });
    edge.share({ maxAge: 60, stale: 30 });
    if (cause) edge.touch(cause);
    assert.equal(finish(edge, new Response(null, { status: 304 })).headers.get('cache-control'), expected);
  }
});

test('an error of the server claims no order and no login', () => {
  const edge = visitor({ 'edge-session': 'none' });
  edge.login('ada');
  edge.logout();
  edge.cart.add('mug');
  edge.order('A-1', { mug: 1 });
  assert.deepEqual(edge.directives(500), { 'edge-logout': '1' });
});

test('ids have the characters that edgefront accepts', () => {
  const accepts = (call) => { try { call(visitor()); return true; } catch { return false; } };
  for (let code = 0; code < 256; code += 1) {
    const character = String.fromCharCode(code);
    const graphic = code > 32 && code < 127;
    assert.equal(accepts((edge) => edge.login(`a${character}`)), graphic && !'{},"\\'.includes(character), character);
    assert.equal(accepts((edge) => edge.tags(`a${character}`)), graphic && character !== ',', character);
    assert.equal(accepts((edge) => edge.item(`a${character}`)), /[A-Za-z0-9]/.test(character) || '-._~'.includes(character), character);
  }
});
