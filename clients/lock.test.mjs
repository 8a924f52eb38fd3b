// `@upstash/lock`: one holder at a time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lock } from "@upstash/lock";
import { client } from "./setup.mjs";

const redis = client();
const LEASE = 100_000;
const ONCE = { attempts: 1, delay: 1 };
const lock = (id, options) => new Lock({ id, redis, lease: LEASE, retry: ONCE, ...options });

test("a lock has one holder, and is free after its release", async () => {
  const [first, second] = [lock("l:one"), lock("l:one")];
  assert.deepEqual([first.id, await first.getStatus()], ["l:one", "FREE"]);
  assert.deepEqual([await first.acquire(), await second.acquire()], [true, false]);
  assert.deepEqual([await first.getStatus(), await second.getStatus()], ["ACQUIRED", "FREE"]);
  assert.equal(await first.release(), true);
  assert.equal(await first.release(), false);
  assert.equal(await second.acquire(), true);
});

test("only the holder releases and extends", async () => {
  const holder = lock("l:holder");
  await holder.acquire({ uuid: "the-holder" });
  const stranger = lock("l:holder");
  await stranger.acquire();
  assert.deepEqual([await stranger.release(), await stranger.extend(LEASE)], [false, false]);
  assert.equal(await redis.get("l:holder"), "the-holder");
});

test("an extension adds to the lease", async () => {
  const holder = lock("l:extended");
  await holder.acquire();
  assert.equal(await holder.extend(LEASE), true);
  const seconds = await redis.ttl("l:extended");
  assert.ok(seconds > 150 && seconds <= 200, `${seconds} s`);
});

test("a lease ends, and a waiting client gets the lock", async () => {
  await lock("l:lease", { lease: 50 }).acquire();
  assert.equal(await lock("l:lease", { retry: { attempts: 10_000, delay: 5 } }).acquire(), true);
});

test("of many concurrent clients, one gets the lock", async () => {
  const acquired = await Promise.all(Array.from({ length: 30 }, () => lock("l:contended").acquire()));
  assert.equal(acquired.filter(Boolean).length, 1);
});
