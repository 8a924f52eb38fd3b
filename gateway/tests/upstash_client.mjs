// The official client against the gateway, in the ways that its README and documentation show. Every step says what it
// relies on; the first difference ends the run with an error.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Redis } from "@upstash/redis";

const url = process.env.UPSTASH_REDIS_REST_URL;
const token = process.env.UPSTASH_REDIS_REST_TOKEN;
const direct = { retry: false, enableTelemetry: false };
const redis = new Redis({ url, token, ...direct });

const steps = {
  async "strings, with types and options"() {
    assert.equal(await redis.set("key", "value"), "OK");
    assert.equal(await redis.get("key"), "value");
    assert.equal(await redis.set("key3", "value3", { ex: 100 }), "OK");
    assert.equal(await redis.ttl("key3"), 100);
    assert.equal(await redis.set("key", "other", { nx: true }), null);
    assert.equal(await redis.get("absent"), null);
    await redis.set("number", 42);
    assert.equal(await redis.get("number"), 42);
    assert.equal(await redis.incrby("number", 8), 50);
    assert.equal(await redis.incrbyfloat("number", 0.5), 50.5);
    await redis.set("flag", true);
    assert.equal(await redis.get("flag"), true);
    assert.deepEqual(await redis.mget("key", "absent", "number"), ["value", null, 50.5]);
    assert.equal(await redis.del("key", "key3", "absent"), 2);
  },

  async "objects, serialised and parsed"() {
    const user = { name: "Zoë", age: 36, tags: ["a", "b"], nested: { yes: true, no: null } };
    await redis.set("user", user);
    assert.deepEqual(await redis.get("user"), user);
  },

  async "text that only base64 carries unharmed"() {
    const text = 'quotes " backslash \\ newline \n NUL \u0000 emoji 🦀 日本語';
    await redis.set("text", text);
    assert.equal(await redis.get("text"), text);
    const plain = new Redis({ url, token, ...direct, responseEncoding: false });
    assert.equal(await plain.get("text"), text);
    assert.equal(await redis.set("ok", "OK"), "OK");
    assert.equal(await redis.get("ok"), "OK");
  },

  async "sorted sets"() {
    assert.equal(await redis.zadd("scores", { score: 1, member: "team1" }, { score: 2.5, member: "team2" }), 2);
    assert.deepEqual(await redis.zrange("scores", 0, 100), ["team1", "team2"]);
    assert.deepEqual(await redis.zrange("scores", 0, 0, { rev: true, withScores: true }), ["team2", 2.5]);
    assert.equal(await redis.zincrby("scores", 5, "team1"), 6);
    assert.equal(await redis.zscore("scores", "team1"), 6);
    assert.equal(await redis.zrank("scores", "team1"), 1);
    assert.equal(await redis.zremrangebyrank("scores", 0, 0), 1);
    assert.equal(await redis.zcard("scores"), 1);
  },

  async "lists, hashes, sets and streams"() {
    assert.equal(await redis.lpush("elements", "magnesium", "iron"), 2);
    assert.deepEqual(await redis.lrange("elements", 0, 100), ["iron", "magnesium"]);
    assert.equal(await redis.rpop("elements"), "magnesium");

    assert.equal(await redis.hset("people", { name: "joe", age: 20, pet: { kind: "cat" } }), 3);
    assert.equal(await redis.hget("people", "name"), "joe");
    assert.deepEqual(await redis.hgetall("people"), { name: "joe", age: 20, pet: { kind: "cat" } });
    assert.deepEqual(await redis.hmget("people", "age", "absent"), { age: 20, absent: null });
    assert.equal(await redis.hincrby("people", "age", 1), 21);
    assert.equal(await redis.hdel("people", "name"), 1);
    assert.equal(await redis.hgetall("absent"), null);

    assert.equal(await redis.sadd("animals", "cat"), 1);
    assert.deepEqual(await redis.spop("animals", 1), ["cat"]);

    const id = await redis.xadd("stream", "*", { item: "i1", quantity: 2 });
    assert.deepEqual(await redis.xrange("stream", "-", "+"), { [id]: { item: "i1", quantity: 2 } });
  },

  async "a scan meets every key once its cursor is 0 again"() {
    const keys = Array.from({ length: 50 }, (_, index) => `scanned:${index}`);
    await redis.mset(Object.fromEntries(keys.map((key) => [key, 1])));
    const found = new Set();
    let cursor = "0";
    do {
      const [next, page] = await redis.scan(cursor, { match: "scanned:*", count: 10 });
      page.forEach((key) => found.add(key));
      cursor = next;
    } while (cursor !== "0");
    assert.deepEqual([...found].sort(), keys.sort());
    const [, fields] = await redis.hscan("people", 0);
    assert.deepEqual(fields, ["age", 21, "pet", { kind: "cat" }]);
  },

  async "a pipeline, with errors kept or thrown"() {
    const results = await redis.pipeline().set("p", 1).incr("p").get("p").hset("q", { a: 1 }).exec();
    assert.deepEqual(results, ["OK", 2, 2, 1]);
    const [first, second] = await redis.pipeline().get("q").get("p").exec({ keepErrors: true });
    assert.match(first.error, /^WRONGTYPE /);
    assert.deepEqual(second, { error: undefined, result: 2 });
    await assert.rejects(redis.pipeline().get("q").exec(), /Command 1 \[ get \] failed: WRONGTYPE/);
  },

  async "concurrent commands become one pipeline"() {
    const automatic = new Redis({ url, token, ...direct, enableAutoPipelining: true });
    const [a, b, c] = await Promise.all([automatic.incr("auto"), automatic.incr("auto"), automatic.incr("auto")]);
    assert.deepEqual([a, b, c], [1, 2, 3]);
    assert.equal(automatic.pipelineCounter, 1);
  },

  async "a transaction, whole or not at all"() {
    const results = await redis.multi().set("t", "1").incr("t").lrange("absent", 0, -1).exec();
    assert.deepEqual(results, ["OK", 2, []]);
    await assert.rejects(redis.multi().set("t", "9").get().exec(), /wrong number of arguments/);
    assert.equal(await redis.get("t"), 2);
  },

  async "scripts by text, by SHA, and optimistically"() {
    assert.deepEqual(await redis.eval("return {KEYS[1], ARGV[1], 3}", ["k"], ["a"]), ["k", "a", 3]);
    const sha = await redis.scriptLoad("return ARGV[1]");
    assert.equal(await redis.evalsha(sha, [], ["hello"]), "hello");
    assert.deepEqual(await redis.scriptExists(sha, "0".repeat(40)), [1, 0]);
    await assert.rejects(redis.evalsha("0".repeat(40), [], []), /NOSCRIPT/);

    const script = redis.createScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    assert.equal(await script.exec(["counter"], ["5"]), 5);
    assert.equal(await script.exec(["counter"], ["5"]), 10);
    const readonly = redis.createScript("return redis.call('GET', KEYS[1])", { readonly: true });
    assert.equal(await readonly.exec(["counter"], []), 10);
  },

  async "scripts that ask for key locking"() {
    const text = "#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])";
    const script = redis.createScript(text);
    assert.equal(await script.exec(["locked"], []), 1);
    assert.equal(await script.evalsha(["locked"], []), 2);
    assert.equal(await redis.scriptLoad(text), createHash("sha1").update(text).digest("hex"));
  },

  async "reading one's own writes with the sync token of another client"() {
    const reader = new Redis({ url, token, ...direct });
    await redis.set("written", "yes");
    const synced = redis.readYourWritesSyncToken;
    assert.ok(synced);
    reader.readYourWritesSyncToken = synced;
    assert.equal(await reader.get("written"), "yes");
    assert.ok(Number(reader.readYourWritesSyncToken) > Number(synced));
  },

  async "errors as the client expects them"() {
    const stranger = new Redis({ url, token: "wrong", ...direct });
    await assert.rejects(stranger.get("key"), /WRONGPASS/);
    await assert.rejects(redis.hget("text", "field"), /WRONGTYPE/);
    await assert.rejects(redis.exec(["BLPOP", "list", 0]), /Command is not available: 'BLPOP'/);
  },
};

for (const [name, step] of Object.entries(steps)) {
  try {
    await step();
  } catch (error) {
    console.error(`step "${name}" failed`);
    throw error;
  }
}
console.log("all steps passed");
