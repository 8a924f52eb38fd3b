// `@upstash/ratelimit`: each algorithm, its caches, and its state in Redis. The windows are longer than any test.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MultiRegionRatelimit, Ratelimit } from "@upstash/ratelimit";
import { client, regionUrls } from "./setup.mjs";

const WINDOW = "1000 d";
const redis = client();
const regions = regionUrls.map((url) => client({ url }));

const limiter = (name, options) => new Ratelimit({ redis, prefix: `limit:${name}`, ephemeralCache: false, analytics: false, ...options });

// Takes so many tokens one after the other. The state in several regions is synchronised in the background.
async function take(ratelimit, count, id = "visitor") {
  const outcomes = [];
  for (let index = 0; index < count; index += 1) {
    const { success, remaining, pending } = await ratelimit.limit(id);
    await pending;
    outcomes.push([success, remaining]);
  }
  return outcomes;
}

const algorithms = {
  "a fixed window": Ratelimit.fixedWindow(3, WINDOW),
  "a sliding window": Ratelimit.slidingWindow(3, WINDOW),
  "a token bucket": Ratelimit.tokenBucket(3, WINDOW, 3),
};
for (const [name, algorithm] of Object.entries(algorithms)) {
  test(`${name} lets its tokens pass and no more`, async () => {
    const ratelimit = limiter(name, { limiter: algorithm });
    assert.deepEqual(await take(ratelimit, 5), [[true, 2], [true, 1], [true, 0], [false, 0], [false, 0]]);
    assert.deepEqual(await take(ratelimit, 1, "another"), [[true, 2]]);
    assert.equal((await ratelimit.getRemaining("visitor")).remaining, 0);
    const { limit, reset } = await ratelimit.limit("visitor");
    assert.equal(limit, 3);
    assert.ok(reset > Date.now());
    await ratelimit.resetUsedTokens("visitor");
    assert.deepEqual(await take(ratelimit, 1), [[true, 2]]);
  });

  test(`${name} takes several tokens at once`, async () => {
    const ratelimit = limiter(`${name} rate`, { limiter: algorithm });
    const outcomes = [await ratelimit.limit("visitor", { rate: 2 }), await ratelimit.limit("visitor", { rate: 2 })];
    assert.deepEqual(outcomes.map(({ success }) => success), [true, false]);
  });

  test(`${name} holds for concurrent requests`, async () => {
    const ratelimit = limiter(`${name} concurrent`, { limiter: algorithm });
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => ratelimit.limit("visitor")));
    assert.equal(outcomes.filter(({ success }) => success).length, 3);
  });

  test(`${name} follows a limit that changes`, async () => {
    const ratelimit = limiter(`${name} dynamic`, { limiter: algorithm, dynamicLimits: true });
    await ratelimit.setDynamicLimit({ limit: 1 });
    assert.deepEqual(await ratelimit.getDynamicLimit(), { dynamicLimit: 1 });
    assert.deepEqual((await take(ratelimit, 2)).map(([success]) => success), [true, false]);
    await ratelimit.setDynamicLimit({ limit: false });
    assert.deepEqual(await ratelimit.getDynamicLimit(), { dynamicLimit: null });
  });
}

test("a cached fixed window answers from memory and counts in Redis", async () => {
  const ratelimit = limiter("cached", { limiter: Ratelimit.cachedFixedWindow(3, WINDOW), ephemeralCache: new Map() });
  assert.deepEqual((await take(ratelimit, 5)).map(([success]) => success), [true, true, true, false, false]);
  // Requests after the first are counted in the background.
  while ((await redis.eval("local n = 0; for _, k in ipairs(redis.call('KEYS', 'limit:cached:*')) do n = n + redis.call('GET', k) end; return n", [], [])) < 3);
});

test("the ephemeral cache refuses a blocked visitor without Redis", async () => {
  const ratelimit = limiter("ephemeral", { limiter: Ratelimit.fixedWindow(1, WINDOW), ephemeralCache: new Map() });
  await take(ratelimit, 2);
  assert.equal((await ratelimit.limit("visitor")).reason, "cacheBlock");
});

test("a visitor can wait until a token is free", async () => {
  const ratelimit = limiter("waiting", { limiter: Ratelimit.tokenBucket(1, "50 ms", 1) });
  await ratelimit.limit("visitor");
  assert.equal((await ratelimit.blockUntilReady("visitor", 60_000)).success, true);
});

test("a denied visitor is refused", async () => {
  const ratelimit = limiter("denied", { limiter: Ratelimit.fixedWindow(9, WINDOW), enableProtection: true });
  // The list of addresses would come from the network.
  await redis.set("limit:denied:ipDenyListStatus", "disabled");
  await redis.sadd("limit:denied:denyList:all", "10.0.0.1");
  const outcome = await ratelimit.limit("visitor", { ip: "10.0.0.1" });
  assert.deepEqual([outcome.success, outcome.reason, outcome.deniedValue], [false, "denyList", "10.0.0.1"]);
  assert.equal((await ratelimit.limit("visitor", { ip: "10.0.0.2" })).success, true);
});

test("analytics are written to Redis", async () => {
  const ratelimit = limiter("analysed", { limiter: Ratelimit.fixedWindow(1, WINDOW), analytics: true });
  await take(ratelimit, 2, "analysed visitor");
  const keys = await redis.keys("limit:analysed:events:*");
  assert.equal(keys.length, 1);
  assert.equal((await redis.zrange(keys[0], 0, -1)).length, 2, "one allowed, one refused");
});

for (const [name, algorithm] of Object.entries({
  "a fixed window": MultiRegionRatelimit.fixedWindow(3, WINDOW),
  "a sliding window": MultiRegionRatelimit.slidingWindow(3, WINDOW),
})) {
  test(`${name} holds in several regions`, async () => {
    assert.equal(regions.length, 3);
    const prefix = `regions:${name}`;
    const ratelimit = new MultiRegionRatelimit({ redis: regions, prefix, limiter: algorithm, ephemeralCache: false });
    assert.deepEqual((await take(ratelimit, 5)).map(([success]) => success), [true, true, true, false, false]);
    for (const region of regions) assert.equal((await region.keys(`${prefix}:*`)).length, 1);
    await ratelimit.resetUsedTokens("visitor");
    assert.equal((await ratelimit.getRemaining("visitor")).remaining, 3);
  });
}
