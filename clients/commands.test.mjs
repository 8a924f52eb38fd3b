// Every method of `@upstash/redis` that sends a command: a case for each, or a line in expected-failures.txt.
import assert from "node:assert/strict";
import { test } from "node:test";
import { client, expectedFailures, method, methodsOf } from "./setup.mjs";

const direct = client();
const automatic = client({ enableAutoPipelining: true });
let redis = direct;
const is = assert.deepEqual;
const OK = "OK";
const now = () => Math.floor(Date.now() / 1000);
const sorted = (list) => [...list].sort();
const near = (actual, expected) => assert.ok(Math.abs(actual - expected) <= 5, `${actual} is not about ${expected}`);
const ofLibrary = (name) => `#!lua name=${name}\nredis.register_function{function_name='${name}_get', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}`;

// Each case gets a key of its own. It ends with the assertions about its method.
const cases = {
  // Keys
  async copy(k) { await redis.set(k, 1); is(await redis.copy(k, k + 2), "COPIED"); is(await redis.copy(k, k + 2), "NOT_COPIED"); is(await redis.copy(k, k + 2, { replace: true }), "COPIED"); },
  async dbsize(k) { const before = await redis.dbsize(); await redis.set(k, 1); is(await redis.dbsize(), before + 1); },
  async del(k) { await redis.mset({ [k]: 1, [k + 2]: 2 }); is(await redis.del(k, k + 2, k + 3), 2); },
  async exists(k) { await redis.set(k, 1); is(await redis.exists(k, k, k + 2), 2); },
  async expire(k) { await redis.set(k, 1); is(await redis.expire(k, 100), 1); is(await redis.expire(k, 50, "GT"), 0); is(await redis.expire(k + 2, 100), 0); is(await redis.ttl(k), 100); },
  async expireat(k) { await redis.set(k, 1); is(await redis.expireat(k, now() + 100), 1); near(await redis.ttl(k), 100); },
  async keys(k) { await redis.mset({ [k + "a"]: 1, [k + "b"]: 2 }); is(sorted(await redis.keys(`${k}*`)), [k + "a", k + "b"]); },
  async persist(k) { await redis.set(k, 1, { ex: 100 }); is(await redis.persist(k), 1); is(await redis.ttl(k), -1); is(await redis.persist(k), 0); },
  async pexpire(k) { await redis.set(k, 1); is(await redis.pexpire(k, 100_000), 1); is(await redis.ttl(k), 100); },
  async pexpireat(k) { await redis.set(k, 1); is(await redis.pexpireat(k, Date.now() + 100_000), 1); near(await redis.ttl(k), 100); },
  async pttl(k) { await redis.set(k, 1, { px: 100_000 }); near((await redis.pttl(k)) / 1000, 100); is(await redis.pttl(k + 2), -2); },
  async randomkey(k) { await redis.set(k, 1); assert.ok(await redis.exists(await redis.randomkey())); },
  async rename(k) { await redis.set(k, 1); is(await redis.rename(k, k + 2), OK); is(await redis.get(k + 2), 1); },
  async renamenx(k) { await redis.mset({ [k]: 1, [k + 2]: 2 }); is(await redis.renamenx(k, k + 2), 0); is(await redis.renamenx(k, k + 3), 1); },
  async scan(k) {
    const keys = Array.from({ length: 30 }, (_, index) => `${k}${index}`);
    await redis.mset(Object.fromEntries(keys.map((key) => [key, 1])));
    const found = new Set();
    let cursor = "0";
    do {
      const [next, page] = await redis.scan(cursor, { match: `${k}*`, count: 5 });
      page.forEach((key) => found.add(key));
      cursor = next;
    } while (cursor !== "0");
    is(sorted(found), sorted(keys));
    const [, none] = await redis.scan(0, { match: `${k}*`, type: "hash", count: 10_000 });
    is(none, []);
  },
  async touch(k) { await redis.set(k, 1); is(await redis.touch(k, k + 2), 1); },
  async ttl(k) { await redis.set(k, 1); is(await redis.ttl(k), -1); is(await redis.ttl(k + 2), -2); },
  async type(k) { is(await redis.type(k), "none"); await redis.lpush(k, 1); is(await redis.type(k), "list"); },
  async unlink(k) { await redis.set(k, 1); is(await redis.unlink(k, k + 2), 1); },

  // Strings
  async append(k) { is(await redis.append(k, "ab"), 2); is(await redis.append(k, "c"), 3); is(await redis.get(k), "abc"); },
  async decr(k) { is(await redis.decr(k), -1); },
  async decrby(k) { is(await redis.decrby(k, 4), -4); },
  async get(k) { is(await redis.get(k), null); await redis.set(k, { a: [1, null, "ä"] }); is(await redis.get(k), { a: [1, null, "ä"] }); },
  async getdel(k) { await redis.set(k, "v"); is(await redis.getdel(k), "v"); is(await redis.getdel(k), null); },
  async getex(k) { await redis.set(k, "v"); is(await redis.getex(k, { ex: 100 }), "v"); is(await redis.ttl(k), 100); await redis.getex(k, { persist: true }); is(await redis.ttl(k), -1); },
  async getrange(k) { await redis.set(k, "Hello World"); is(await redis.getrange(k, -5, -1), "World"); },
  async getset(k) { is(await redis.getset(k, "a"), null); is(await redis.getset(k, "b"), "a"); },
  async incr(k) { is(await redis.incr(k), 1); is(await redis.incr(k), 2); },
  async incrby(k) { is(await redis.incrby(k, 5), 5); },
  async incrbyfloat(k) { is(await redis.incrbyfloat(k, 2.5), 2.5); is(await redis.incrbyfloat(k, -0.25), 2.25); },
  async mget(k) { await redis.mset({ [k]: "a", [k + 2]: { b: 1 } }); is(await redis.mget(k, k + 3, k + 2), ["a", null, { b: 1 }]); is(await redis.mget([k]), ["a"]); },
  async mset(k) { is(await redis.mset({ [k]: 1, [k + 2]: true }), OK); is(await redis.mget(k, k + 2), [1, true]); },
  async msetnx(k) { is(await redis.msetnx({ [k]: 1, [k + 2]: 2 }), 1); is(await redis.msetnx({ [k + 2]: 1, [k + 3]: 2 }), 0); is(await redis.exists(k + 3), 0); },
  async psetex(k) { is(await redis.psetex(k, 100_000, "v"), OK); is(await redis.ttl(k), 100); },
  async set(k) {
    is(await redis.set(k, "a", { ex: 100 }), OK);
    is(await redis.set(k, "b", { keepTtl: true }), OK);
    is(await redis.ttl(k), 100);
    is(await redis.set(k, "c", { nx: true }), null);
    is(await redis.set(k, "c", { get: true, xx: true, pxat: Date.now() + 50_000 }), "b");
    near(await redis.ttl(k), 50);
    is(await redis.set(k + 2, "c", { xx: true }), null);
  },
  async setex(k) { is(await redis.setex(k, 100, { a: 1 }), OK); is(await redis.ttl(k), 100); is(await redis.get(k), { a: 1 }); },
  async setnx(k) { is(await redis.setnx(k, 1), 1); is(await redis.setnx(k, 2), 0); },
  async setrange(k) { await redis.set(k, "originalValue"); is(await redis.setrange(k, 4, "helloWorld"), 14); is(await redis.get(k), "orighelloWorld"); },
  async strlen(k) { await redis.set(k, "äö"); is(await redis.strlen(k), 4); is(await redis.strlen(k + 2), 0); },

  // Bits
  async bitcount(k) { await redis.set(k, "Hello World"); is(await redis.bitcount(k), 43); is(await redis.bitcount(k, 4, 8), 22); },
  async bitfield(k) { is(await redis.bitfield(k).set("u4", 0, 1).incrby("u4", "#1", 7).get("u8", 0).overflow("FAIL").incrby("u4", 0, 15).exec(), [0, 7, 23, null]); },
  async bitop(k) { await redis.setbit(k, 0, 1); await redis.setbit(k + 2, 1, 1); is(await redis.bitop("or", k + 3, k, k + 2), 1); is(await redis.bitcount(k + 3), 2); },
  async bitpos(k) { await redis.setbit(k, 10, 1); is(await redis.bitpos(k, 1), 10); is(await redis.bitpos(k, 1, 2), -1); },
  async getbit(k) { await redis.setbit(k, 7, 1); is([await redis.getbit(k, 7), await redis.getbit(k, 6)], [1, 0]); },
  async setbit(k) { is(await redis.setbit(k, 4, 1), 0); is(await redis.setbit(k, 4, 0), 1); },

  // Hashes
  async hdel(k) { await redis.hset(k, { a: 1, b: 2 }); is(await redis.hdel(k, "a", "b", "c"), 2); },
  async hexists(k) { await redis.hset(k, { a: 1 }); is([await redis.hexists(k, "a"), await redis.hexists(k, "b")], [1, 0]); },
  async hexpire(k) { await redis.hset(k, { a: 1 }); is(await redis.hexpire(k, ["a", "b"], 100), [1, -2]); is(await redis.hexpire(k, "a", 50, "GT"), [0]); is(await redis.httl(k, "a"), [100]); },
  async hexpireat(k) { await redis.hset(k, { a: 1 }); is(await redis.hexpireat(k, "a", now() + 100), [1]); near((await redis.httl(k, "a"))[0], 100); },
  async hexpiretime(k) { await redis.hset(k, { a: 1, b: 2 }); const at = now() + 100; await redis.hexpireat(k, "a", at); is(await redis.hexpiretime(k, ["a", "b"]), [at, -1]); },
  async httl(k) { await redis.hset(k, { a: 1 }); is(await redis.httl(k, ["a", "b"]), [-1, -2]); },
  async hpexpire(k) { await redis.hset(k, { a: 1 }); is(await redis.hpexpire(k, "a", 100_000), [1]); is(await redis.httl(k, "a"), [100]); },
  async hpexpireat(k) { await redis.hset(k, { a: 1 }); is(await redis.hpexpireat(k, "a", Date.now() + 100_000), [1]); near((await redis.httl(k, "a"))[0], 100); },
  async hpexpiretime(k) { await redis.hset(k, { a: 1 }); const at = Date.now() + 100_000; await redis.hpexpireat(k, "a", at); is(await redis.hpexpiretime(k, "a"), [at]); },
  async hpttl(k) { await redis.hset(k, { a: 1 }); await redis.hpexpire(k, "a", 100_000); near((await redis.hpttl(k, "a"))[0] / 1000, 100); },
  async hpersist(k) { await redis.hset(k, { a: 1 }); await redis.hexpire(k, "a", 100); is(await redis.hpersist(k, ["a", "b"]), [1, -2]); is(await redis.httl(k, "a"), [-1]); },
  async hget(k) { await redis.hset(k, { a: { b: 1 } }); is(await redis.hget(k, "a"), { b: 1 }); is(await redis.hget(k, "c"), null); },
  async hgetall(k) { is(await redis.hgetall(k), null); await redis.hset(k, { a: 1, b: "x" }); is({ ...(await redis.hgetall(k)) }, { a: 1, b: "x" }); },
  async hgetdel(k) { await redis.hset(k, { a: 1, b: 2 }); is({ ...(await redis.hgetdel(k, "a", "c")) }, { a: 1, c: null }); is(await redis.hlen(k), 1); },
  async hgetex(k) { await redis.hset(k, { a: 1 }); is({ ...(await redis.hgetex(k, { ex: 100 }, "a")) }, { a: 1 }); is(await redis.httl(k, "a"), [100]); },
  async hincrby(k) { is(await redis.hincrby(k, "a", 3), 3); is(await redis.hincrby(k, "a", -1), 2); },
  async hincrbyfloat(k) { is(await redis.hincrbyfloat(k, "a", 1.5), 1.5); },
  async hkeys(k) { await redis.hset(k, { a: 1, b: 2 }); is(sorted(await redis.hkeys(k)), ["a", "b"]); },
  async hlen(k) { is(await redis.hlen(k), 0); await redis.hset(k, { a: 1, b: 2 }); is(await redis.hlen(k), 2); },
  async hmget(k) { await redis.hset(k, { a: 1 }); is({ ...(await redis.hmget(k, "a", "b")) }, { a: 1, b: null }); is(await redis.hmget(k + 2, "a"), null); },
  async hmset(k) { is(await redis.hmset(k, { a: 1, b: [2] }), OK); is(await redis.hget(k, "b"), [2]); },
  async hrandfield(k) { await redis.hset(k, { a: 1, b: 2 }); assert.ok(["a", "b"].includes(await redis.hrandfield(k))); is(sorted(await redis.hrandfield(k, 5)), ["a", "b"]); is({ ...(await redis.hrandfield(k, 5, true)) }, { a: 1, b: 2 }); },
  async hscan(k) { await redis.hset(k, { a: 1, b: 2 }); is(await redis.hscan(k, 0, { match: "a*", count: 10 }), ["0", ["a", 1]]); },
  async hset(k) { is(await redis.hset(k, { a: 1, b: null }), 2); is(await redis.hset(k, { a: 2, c: 3 }), 1); },
  async hsetex(k) { is(await redis.hsetex(k, { expiration: { ex: 100 }, conditional: "FNX" }, { a: 1 }), 1); is(await redis.hsetex(k, { conditional: "FNX" }, { a: 2 }), 0); is(await redis.httl(k, "a"), [100]); },
  async hsetnx(k) { is(await redis.hsetnx(k, "a", 1), 1); is(await redis.hsetnx(k, "a", 2), 0); },
  async hstrlen(k) { await redis.hset(k, { a: "four" }); is(await redis.hstrlen(k, "a"), 4); },
  async hvals(k) { await redis.hset(k, { a: 1, b: "x" }); is(sorted(await redis.hvals(k)), [1, "x"]); },

  // Lists
  async lindex(k) { await redis.rpush(k, "a", "b"); is([await redis.lindex(k, 0), await redis.lindex(k, -1), await redis.lindex(k, 9)], ["a", "b", null]); },
  async linsert(k) { await redis.rpush(k, "a", "c"); is(await redis.linsert(k, "before", "c", "b"), 3); is(await redis.linsert(k, "after", "x", "y"), -1); is(await redis.lrange(k, 0, -1), ["a", "b", "c"]); },
  async llen(k) { await redis.rpush(k, "a", "b"); is(await redis.llen(k), 2); },
  async lmove(k) { await redis.rpush(k, "a", "b"); is(await redis.lmove(k, k + 2, "right", "left"), "b"); is(await redis.lrange(k + 2, 0, -1), ["b"]); },
  async lmpop(k) { await redis.rpush(k, "a", "b", "c"); is(await redis.lmpop(2, [k + 2, k], "LEFT", 2), [k, ["a", "b"]]); is(await redis.lmpop(1, [k + 2], "RIGHT"), null); },
  async lpop(k) { await redis.rpush(k, "a", "b", "c"); is(await redis.lpop(k), "a"); is(await redis.lpop(k, 2), ["b", "c"]); is(await redis.lpop(k), null); },
  async lpos(k) { await redis.rpush(k, "a", "b", "a"); is(await redis.lpos(k, "a", { rank: 2 }), 2); is(await redis.lpos(k, "a", { count: 0, maxLen: 9 }), [0, 2]); is(await redis.lpos(k, "x"), null); },
  async lpush(k) { is(await redis.lpush(k, "a", "b"), 2); is(await redis.lrange(k, 0, -1), ["b", "a"]); },
  async lpushx(k) { is(await redis.lpushx(k, "a"), 0); await redis.lpush(k, "a"); is(await redis.lpushx(k, "b"), 2); },
  async lrange(k) { await redis.rpush(k, 1, "a", { b: 2 }); is(await redis.lrange(k, 1, -1), ["a", { b: 2 }]); },
  async lrem(k) { await redis.rpush(k, "a", "b", "a"); is(await redis.lrem(k, -1, "a"), 1); is(await redis.lrange(k, 0, -1), ["a", "b"]); },
  async lset(k) { await redis.rpush(k, "a"); is(await redis.lset(k, 0, "b"), OK); await assert.rejects(redis.lset(k, 5, "x"), /index out of range/); },
  async ltrim(k) { await redis.rpush(k, "a", "b", "c"); is(await redis.ltrim(k, 1, 1), OK); is(await redis.lrange(k, 0, -1), ["b"]); },
  async rpop(k) { await redis.rpush(k, "a", "b", "c"); is(await redis.rpop(k), "c"); is(await redis.rpop(k, 5), ["b", "a"]); },
  async rpush(k) { is(await redis.rpush(k, "a", "b"), 2); is(await redis.lrange(k, 0, -1), ["a", "b"]); },
  async rpushx(k) { is(await redis.rpushx(k, "a"), 0); await redis.rpush(k, "a"); is(await redis.rpushx(k, "b"), 2); },

  // Sets
  async sadd(k) { is(await redis.sadd(k, "a", "b", "a"), 2); },
  async scard(k) { await redis.sadd(k, "a", "b"); is(await redis.scard(k), 2); },
  async sdiff(k) { await redis.sadd(k, "a", "b"); await redis.sadd(k + 2, "b"); is(await redis.sdiff(k, k + 2), ["a"]); },
  async sdiffstore(k) { await redis.sadd(k, "a", "b"); await redis.sadd(k + 2, "b"); is(await redis.sdiffstore(k + 3, k, k + 2), 1); },
  async sinter(k) { await redis.sadd(k, "a", "b"); await redis.sadd(k + 2, "b"); is(await redis.sinter(k, k + 2), ["b"]); },
  async sintercard(k) { await redis.sadd(k, "a", "b"); await redis.sadd(k + 2, "a", "b"); is(await redis.sintercard([k, k + 2]), 2); is(await redis.sintercard([k, k + 2], { limit: 1 }), 1); },
  async sinterstore(k) { await redis.sadd(k, "a", "b"); await redis.sadd(k + 2, "b"); is(await redis.sinterstore(k + 3, k, k + 2), 1); },
  async sismember(k) { await redis.sadd(k, "a"); is([await redis.sismember(k, "a"), await redis.sismember(k, "b")], [1, 0]); },
  async smembers(k) { await redis.sadd(k, "a", { b: 1 }); is((await redis.smembers(k)).length, 2); is(await redis.smembers(k + 2), []); },
  async smismember(k) { await redis.sadd(k, "a"); is(await redis.smismember(k, ["a", "b"]), [1, 0]); },
  async smove(k) { await redis.sadd(k, "a"); is(await redis.smove(k, k + 2, "a"), 1); is(await redis.smove(k, k + 2, "a"), 0); },
  async spop(k) { await redis.sadd(k, "a"); is(await redis.spop(k), "a"); is(await redis.spop(k, 2), []); },
  async srandmember(k) { await redis.sadd(k, "a"); is(await redis.srandmember(k), "a"); is(await redis.srandmember(k, -3), ["a", "a", "a"]); },
  async srem(k) { await redis.sadd(k, "a"); is(await redis.srem(k, "a", "b"), 1); },
  async sscan(k) { await redis.sadd(k, "a", "b"); is(await redis.sscan(k, 0, { match: "a" }), ["0", ["a"]]); },
  async sunion(k) { await redis.sadd(k, "a"); await redis.sadd(k + 2, "b"); is(sorted(await redis.sunion(k, k + 2)), ["a", "b"]); },
  async sunionstore(k) { await redis.sadd(k, "a"); await redis.sadd(k + 2, "b"); is(await redis.sunionstore(k + 3, k, k + 2), 2); },

  // Sorted sets
  async zadd(k) {
    is(await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: { b: 1 } }), 2);
    is(await redis.zadd(k, { nx: true }, { score: 9, member: "a" }), 0);
    is(await redis.zadd(k, { ch: true, gt: true }, { score: 3, member: "a" }), 1);
    is(await redis.zadd(k, { incr: true }, { score: 0.5, member: "a" }), 3.5);
  },
  async zcard(k) { await redis.zadd(k, { score: 1, member: "a" }); is(await redis.zcard(k), 1); },
  async zcount(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zcount(k, "(1", "+inf"), 1); },
  async zdiffstore(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); await redis.zadd(k + 2, { score: 1, member: "b" }); is(await redis.zdiffstore(k + 3, 2, k, k + 2), 1); },
  async zincrby(k) { is(await redis.zincrby(k, 1.5, "a"), 1.5); },
  async zinterstore(k) { await redis.zadd(k, { score: 1, member: "a" }); await redis.zadd(k + 2, { score: 2, member: "a" }); is(await redis.zinterstore(k + 3, 2, [k, k + 2], { weights: [2, 3], aggregate: "max" }), 1); is(await redis.zscore(k + 3, "a"), 6); },
  async zlexcount(k) { await redis.zadd(k, { score: 0, member: "a" }, { score: 0, member: "b" }); is(await redis.zlexcount(k, "(a", "+"), 1); },
  async zmscore(k) { await redis.zadd(k, { score: 1.5, member: "a" }); is(await redis.zmscore(k, ["a", "b"]), [1.5, null]); },
  async zpopmax(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zpopmax(k), ["b", 2]); },
  async zpopmin(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zpopmin(k, 5), ["a", 1, "b", 2]); },
  async zrange(k) {
    await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }, { score: 3, member: "c" });
    is(await redis.zrange(k, 0, 1, { withScores: true }), ["a", 1, "b", 2]);
    is(await redis.zrange(k, "(1", "+inf", { byScore: true, offset: 1, count: 1 }), ["c"]);
    is(await redis.zrange(k, 0, 0, { rev: true }), ["c"]);
    is(await redis.zrange(k, "[b", "+", { byLex: true }), ["b", "c"]);
  },
  async zrank(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is([await redis.zrank(k, "b"), await redis.zrank(k, "x")], [1, null]); },
  async zrem(k) { await redis.zadd(k, { score: 1, member: "a" }); is(await redis.zrem(k, "a", "b"), 1); },
  async zremrangebylex(k) { await redis.zadd(k, { score: 0, member: "a" }, { score: 0, member: "b" }); is(await redis.zremrangebylex(k, "-", "[a"), 1); },
  async zremrangebyrank(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zremrangebyrank(k, 0, 0), 1); },
  async zremrangebyscore(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zremrangebyscore(k, "-inf", "(2"), 1); },
  async zrevrank(k) { await redis.zadd(k, { score: 1, member: "a" }, { score: 2, member: "b" }); is(await redis.zrevrank(k, "a"), 1); },
  async zscan(k) { await redis.zadd(k, { score: 1, member: "a" }); is(await redis.zscan(k, 0, { count: 5 }), ["0", ["a", 1]]); },
  async zscore(k) { await redis.zadd(k, { score: 1e300, member: "a" }); is([await redis.zscore(k, "a"), await redis.zscore(k, "b")], [1e300, null]); },
  async zunion(k) { await redis.zadd(k, { score: 1, member: "a" }); await redis.zadd(k + 2, { score: 2, member: "a" }); is(await redis.zunion(2, [k, k + 2], { withScores: true }), ["a", 3]); },
  async zunionstore(k) { await redis.zadd(k, { score: 1, member: "a" }); await redis.zadd(k + 2, { score: 2, member: "b" }); is(await redis.zunionstore(k + 3, 2, [k, k + 2]), 2); },

  // Geography and counts
  async geoadd(k) { is(await redis.geoadd(k, { longitude: 13.361389, latitude: 38.115556, member: "Palermo" }, { longitude: 15.087269, latitude: 37.502669, member: "Catania" }), 2); is(await redis.geoadd(k, { nx: true }, { longitude: 0, latitude: 0, member: "Palermo" }), 0); },
  async geodist(k) { await sicily(k); is(await redis.geodist(k, "Palermo", "Catania", "KM"), 166.2742); is(await redis.geodist(k, "Palermo", "Rome"), null); },
  async geohash(k) { await sicily(k); is(await redis.geohash(k, "Palermo", "Rome"), ["sqc8b49rny0", null]); },
  async geopos(k) { await sicily(k); const [position] = await redis.geopos(k, "Palermo"); near(position.lng, 13.361389); near(position.lat, 38.115556); },
  async geosearch(k) {
    await sicily(k);
    const circle = [{ type: "FROMLONLAT", coordinate: { lon: 15, lat: 37 } }, { type: "BYRADIUS", radius: 200, radiusType: "KM" }];
    is(await redis.geosearch(k, ...circle, "ASC"), [{ member: "Catania" }, { member: "Palermo" }]);
    is(await redis.geosearch(k, ...circle, "DESC", { withDist: true, count: { limit: 1 } }), [{ member: "Palermo", dist: 190.4424 }]);
  },
  async geosearchstore(k) { await sicily(k); is(await redis.geosearchstore(k + 2, k, { type: "FROMMEMBER", member: "Palermo" }, { type: "BYBOX", rect: { width: 400, height: 400 }, rectType: "KM" }, "ASC"), 2); },
  async pfadd(k) { is(await redis.pfadd(k, "a", "b"), 1); is(await redis.pfadd(k, "a"), 0); },
  async pfcount(k) { await redis.pfadd(k, "a", "b"); is(await redis.pfcount(k, k + 2), 2); },
  async pfmerge(k) { await redis.pfadd(k, "a"); await redis.pfadd(k + 2, "b"); is(await redis.pfmerge(k + 3, k, k + 2), OK); is(await redis.pfcount(k + 3), 2); },

  // Streams
  async xadd(k) { is(await redis.xadd(k, "1-1", { a: 1, b: { c: 2 } }), "1-1"); is(await redis.xadd(k + 2, "*", { a: 1 }, { nomkStream: true }), null); await redis.xadd(k, "2-1", { a: 2 }, { trim: { type: "MAXLEN", threshold: 1, comparison: "=" } }); is(await redis.xlen(k), 1); },
  async xdel(k) { await redis.xadd(k, "1-1", { a: 1 }); is(await redis.xdel(k, ["1-1", "9-9"]), 1); },
  async xlen(k) { await redis.xadd(k, "1-1", { a: 1 }); is(await redis.xlen(k), 1); },
  async xrange(k) { await redis.xadd(k, "1-1", { a: 1 }); await redis.xadd(k, "2-1", { a: "x" }); is(JSON.stringify(await redis.xrange(k, "-", "+", 1)), `{"1-1":{"a":1}}`); },
  async xrevrange(k) { await redis.xadd(k, "1-1", { a: 1 }); await redis.xadd(k, "2-1", { a: 2 }); is(JSON.stringify(await redis.xrevrange(k, "+", "-", 1)), `{"2-1":{"a":2}}`); },
  async xread(k) { await redis.xadd(k, "1-1", { a: 1 }); is(await redis.xread(k, "0-0"), [[k, [["1-1", ["a", 1]]]]]); is(await redis.xread([k, k + 2], ["1-1", "0"], { count: 1 }), null); },
  async xtrim(k) { for (const id of ["1-1", "2-1", "3-1"]) await redis.xadd(k, id, { a: 1 }); is(await redis.xtrim(k, { strategy: "MAXLEN", threshold: 1, exactness: "=" }), 2); },
  async xgroup(k) {
    is(await redis.xgroup(k, { type: "CREATE", group: "g", id: "$", options: { MKSTREAM: true } }), OK);
    is(await redis.xgroup(k, { type: "CREATECONSUMER", group: "g", consumer: "c" }), 1);
    is(await redis.xgroup(k, { type: "SETID", group: "g", id: "0" }), OK);
    is(await redis.xgroup(k, { type: "DELCONSUMER", group: "g", consumer: "c" }), 0);
    is(await redis.xgroup(k, { type: "DESTROY", group: "g" }), 1);
  },
  async xreadgroup(k) { await group(k); is(await redis.xreadgroup("g", "c", k, ">", { count: 1 }), [[k, [["1-1", ["a", 1]]]]]); },
  async xack(k) { await group(k, "c"); is(await redis.xack(k, "g", ["1-1", "9-9"]), 1); },
  async xpending(k) { await group(k, "c"); const [[id, consumer]] = await redis.xpending(k, "g", "-", "+", 10); is([id, consumer], ["1-1", "c"]); },
  async xclaim(k) { await group(k, "c"); is(await redis.xclaim(k, "g", "d", 0, "1-1", { justId: true }), ["1-1"]); },
  async xautoclaim(k) { await group(k, "c"); const [next, entries] = await redis.xautoclaim(k, "g", "d", 0, "0", { count: 5 }); is([next, entries[0][0]], ["0-0", "1-1"]); },
  async xinfo(k) { await group(k, "c"); is((await redis.xinfo(k, { type: "GROUPS" }))[0].slice(0, 2), ["name", "g"]); is((await redis.xinfo(k, { type: "CONSUMERS", group: "g" }))[0].slice(0, 2), ["name", "c"]); },

  // Scripts and functions
  async eval(k) { is(await redis.eval("return {KEYS[1], ARGV[1], 3, false, {1}}", [k], ["a"]), [k, "a", 3, null, [1]]); },
  async evalRo(k) { is(await redis.evalRo("return ARGV[1]", [k], ["x"]), "x"); await assert.rejects(redis.evalRo("return redis.call('SET', KEYS[1], 1)", [k], []), /Write commands are not allowed/); },
  async evalsha(k) { const sha = await redis.scriptLoad("return ARGV[1]"); is(await redis.evalsha(sha, [k], [7]), 7); },
  async evalshaRo(k) { const sha = await redis.scriptLoad("return redis.call('GET', KEYS[1])"); await redis.set(k, "v"); is(await redis.evalshaRo(sha, [k], []), "v"); },
  async scriptExists() { const sha = await redis.scriptLoad("return 1"); is(await redis.scriptExists(sha, "0".repeat(40)), [1, 0]); },
  async scriptLoad() { is(await redis.scriptLoad("return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"); },
  async scriptFlush() { const sha = await redis.scriptLoad("return 9"); is(await redis.scriptFlush({ sync: true }), OK); is(await redis.scriptExists(sha), [0]); },
  async "functions.load"() { is(await redis.functions.load({ code: ofLibrary("loaded"), replace: true }), "loaded"); await assert.rejects(redis.functions.load({ code: ofLibrary("loaded") }), /already exists/); },
  async "functions.list"() { await redis.functions.load({ code: ofLibrary("listed"), replace: true }); const [library] = await redis.functions.list({ libraryName: "listed", withCode: true }); is([library.libraryName, library.functions[0].name, library.libraryCode], ["listed", "listed_get", ofLibrary("listed")]); },
  async "functions.call"(k) { await redis.functions.load({ code: ofLibrary("called"), replace: true }); await redis.set(k, "v"); is(await redis.functions.call("called_get", [k]), "v"); },
  async "functions.callRo"(k) { await redis.functions.load({ code: ofLibrary("read"), replace: true }); await redis.set(k, 5); is(await redis.functions.callRo("read_get", [k]), 5); },
  async "functions.stats"() { const stats = await redis.functions.stats(); is(Object.keys(stats.engines), ["LUA"]); },
  async "functions.delete"() { await redis.functions.load({ code: ofLibrary("deleted"), replace: true }); is(await redis.functions.delete("deleted"), OK); },
  async "functions.flush"() { is(await redis.functions.flush(), OK); is(await redis.functions.list(), []); },

  // The server
  async echo() { is(await redis.echo("ä"), "ä"); },
  async exec(k) { is(await redis.exec(["SET", k, "v", "EX", 100]), OK); is(await redis.exec(["TTL", k]), 100); },
  async ping() { is(await redis.ping(), "PONG"); is(await redis.ping(["hello"]), "hello"); },
  async publish(k) { is(await redis.publish(k, { a: 1 }), 0); },
  async time() { const [seconds] = await redis.time(); near(seconds, now()); },
  async flushdb(k) { await redis.set(k, 1); is(await redis.flushdb({ async: true }), OK); is(await redis.exists(k), 0); },
  async flushall(k) { await redis.set(k, 1); is(await redis.flushall(), OK); is(await redis.dbsize(), 0); },
};

async function sicily(k) {
  await redis.geoadd(k, { longitude: 13.361389, latitude: 38.115556, member: "Palermo" }, { longitude: 15.087269, latitude: 37.502669, member: "Catania" });
}

// A stream with an entry and a group, whose entry the consumer has read.
async function group(k, consumer) {
  await redis.xadd(k, "1-1", { a: 1 });
  await redis.xgroup(k, { type: "CREATE", group: "g", id: "0" });
  if (consumer) await redis.xreadgroup("g", consumer, k, ">");
}

// An automatic pipeline of the client takes neither.
const ONLY_DIRECT = ["bitfield", "exec"];
for (const [name, run] of Object.entries(cases)) {
  test(name, () => {
    redis = direct;
    return run(`case:${name}:`);
  });
  if (ONLY_DIRECT.includes(name)) continue;
  test(`${name}, with automatic pipelines`, () => {
    redis = automatic;
    return run(`automatic:${name}:`);
  });
}

// The texts of the gateway for a command that the server lacks, and for one that needs a connection.
const UNAVAILABLE = /ERR Command is not available: '|ERR Command "[A-Z]+" is not allowed in REST/;
const failures = expectedFailures("@upstash/redis");
for (const { name, args, reason } of failures) {
  test(`${name} is not available: ${reason}`, async () => {
    await assert.rejects(async () => method(direct, name)(...args), UNAVAILABLE, `${name} works: remove its line from expected-failures.txt, and add a case`);
  });
}

test("every method has a case", () => {
  // streams.test.mjs has their cases.
  const elsewhere = ["psubscribe", "subscribe"];
  const covered = [...Object.keys(cases), ...failures.map(({ name }) => name).filter((name) => !/^(search|vector)\./.test(name)), ...elsewhere, "search", "vector"];
  is(methodsOf(direct), sorted(covered));
});
