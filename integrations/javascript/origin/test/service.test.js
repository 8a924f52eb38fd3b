import assert from 'node:assert/strict';
import { test } from 'node:test';

import { api } from './support.js';

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

test('the bodies of a purge are split by their bytes', async (t) => {
  const { calls, service } = await api(t);
  // 3 bytes for each character.
  service.purge({ urls: Array.from({ length: 100 }, (_, i) => `/${'茶'.repeat(100)}${i}`) });
  await service.flush();
  assert.equal(calls.flatMap(({ body }) => body.urls).length, 100);
  for (const { body } of calls) assert.ok(Buffer.byteLength(JSON.stringify(body)) <= 16 * 1024);
});
