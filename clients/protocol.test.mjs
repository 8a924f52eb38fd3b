// `@upstash/redis` beyond single commands: pipelines, transactions, scripts, encodings, tokens and errors.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Redis } from "@upstash/redis";
import { client, readOnlyToken, token, url } from "./setup.mjs";

const redis = client();

test("a pipeline returns one result for each command, in order", async () => {
  const pipeline = redis.pipeline().set("p:a", { b: 1 }).get("p:a").incr("p:n").zadd("p:z", { score: 1, member: "m" });
  assert.equal(pipeline.length(), 4);
  assert.deepEqual(await pipeline.exec(), ["OK", { b: 1 }, 1, 1]);
});

test("an error of a pipeline is thrown with its position, or kept", async () => {
  await redis.hset("p:hash", { a: 1 });
  await assert.rejects(redis.pipeline().ping().get("p:hash").exec(), /Command 2 \[ get \] failed: WRONGTYPE/);
  const [first, second] = await redis.pipeline().get("p:hash").ping().exec({ keepErrors: true });
  assert.match(first.error, /^WRONGTYPE /);
  assert.deepEqual(second, { error: undefined, result: "PONG" });
});

test("a pipeline carries a thousand commands", async () => {
  const pipeline = redis.pipeline();
  for (let index = 0; index < 1_000; index += 1) pipeline.incr("p:thousand");
  assert.equal((await pipeline.exec()).at(-1), 1_000);
  await assert.rejects(redis.pipeline().exec(), /Pipeline is empty/);
});

test("a transaction is executed as a whole or not at all", async () => {
  assert.deepEqual(await redis.multi().set("m:a", 1).incr("m:a").exec(), ["OK", 2]);
  await assert.rejects(redis.multi().set("m:a", 9).get().exec(), /wrong number of arguments for 'get' command/);
  assert.equal(await redis.get("m:a"), 2);
});

test("an error inside a transaction does not undo the other commands", async () => {
  await redis.hset("m:hash", { a: 1 });
  const results = await redis.multi().incr("m:hash").set("m:b", 1).exec({ keepErrors: true });
  assert.match(results[0].error, /^WRONGTYPE /);
  assert.equal(results[1].result, "OK");
});

test("concurrent commands become one pipeline for reads and one for writes", async () => {
  const automatic = client({ enableAutoPipelining: true });
  const results = await Promise.all([automatic.set("auto:a", 1), automatic.get("auto:a"), automatic.incr("auto:n"), automatic.get("auto:none")]);
  assert.deepEqual([results[0], results[2], results[3]], ["OK", 1, null]);
  assert.equal(automatic.pipelineCounter, 2);
  await redis.hset("auto:hash", { a: 1 });
  const settled = await Promise.allSettled([automatic.get("auto:hash"), automatic.get("auto:a")]);
  assert.match(settled[0].reason.message, /WRONGTYPE/);
  assert.equal(settled[1].value, 1, "the error of one command fails no other");
});

test("scripts are sent by their SHA-1, and as text when the server lost them", async () => {
  const script = redis.createScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
  assert.deepEqual([await script.exec(["s:n"], ["2"]), await script.exec(["s:n"], ["2"])], [2, 4]);
  await redis.scriptFlush();
  await assert.rejects(script.evalsha(["s:n"], ["2"]), /NOSCRIPT/);
  assert.equal(await script.exec(["s:n"], ["2"]), 6);
  const reading = redis.createScript("return redis.call('GET', KEYS[1])", { readonly: true });
  assert.deepEqual([await reading.exec(["s:n"], []), await reading.evalshaRo(["s:n"], []), await reading.evalRo(["s:n"], [])], [6, 6, 6]);
});

test("scripts with key locking keep their own SHA-1", async () => {
  const text = "#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])";
  const script = redis.createScript(text);
  assert.deepEqual([await script.exec(["s:locked"], []), await script.evalsha(["s:locked"], [])], [1, 2]);
  assert.equal(await redis.scriptLoad(text), createHash("sha1").update(text).digest("hex"));
});

test("any text survives, with and without base64", async () => {
  const plain = client({ responseEncoding: false });
  for (const text of ['" \\ \n \r \t \u0000 \u001f', "🦀 日本語 é", "OK", "", " ", "a".repeat(100_000)]) {
    await redis.set("e:text", text);
    assert.equal(await redis.get("e:text"), text);
    assert.equal(await plain.get("e:text"), text);
  }
});

test("values are parsed, unless the client is told not to", async () => {
  const raw = client({ automaticDeserialization: false });
  await redis.set("e:json", { a: [1, "x", null, true] });
  assert.deepEqual(await redis.get("e:json"), { a: [1, "x", null, true] });
  assert.equal(await raw.get("e:json"), '{"a":[1,"x",null,true]}');
  await redis.set("e:large", "9007199254740993");
  assert.equal(await redis.get("e:large"), "9007199254740993", "a number that JavaScript would round stays text");
});

test("a client reads the writes of another with its sync token", async () => {
  const reader = client();
  await redis.set("y:k", "written");
  reader.readYourWritesSyncToken = redis.readYourWritesSyncToken;
  assert.equal(await reader.get("y:k"), "written");
  assert.ok(Number(reader.readYourWritesSyncToken) > Number(redis.readYourWritesSyncToken));
});

test("the read-only token reads and writes nothing", async () => {
  const reader = client({ token: readOnlyToken });
  await redis.set("r:k", "v");
  assert.equal(await reader.get("r:k"), "v");
  for (const refused of [() => reader.set("r:k", "x"), () => reader.keys("*"), () => reader.flushall(), () => reader.eval("return 1", [], []), () => reader.publish("c", "m")]) {
    await assert.rejects(refused, /NOPERM this user has no permissions to run the '/);
  }
});

test("errors name the code and the command", async () => {
  await redis.hset("x:hash", { a: 1 });
  for (const [attempt, expected] of [
    [() => redis.get("x:hash"), /WRONGTYPE Operation against a key.*command was: \["get","x:hash"\]/],
    [() => redis.exec(["GET"]), /ERR wrong number of arguments for 'get' command/],
    [() => redis.exec(["NOSUCH", "x"]), /ERR Command is not available: 'NOSUCH'/],
    [() => redis.exec(["SUBSCRIBE", "c"]), /ERR Command "SUBSCRIBE" is not allowed in REST/],
    [() => redis.exec(["BLPOP", "l", 0]), /ERR Command is not available: 'BLPOP'/],
    [() => client({ token: "wrong" }).ping(), /WRONGPASS/],
  ]) {
    await assert.rejects(attempt, (error) => error.name === "UpstashError" && expected.test(error.message));
  }
});

test("a request can be aborted", async () => {
  const aborted = client({ signal: AbortSignal.abort("enough"), responseEncoding: false });
  assert.equal(await aborted.exec(["GET", "k"]), "enough");
});

test("the environment and telemetry headers make no difference", async () => {
  assert.equal(await Redis.fromEnv().ping(), "PONG");
  assert.equal(await new Redis({ url, token, latencyLogging: false }).ping(), "PONG");
});

test("middleware sees each request", async () => {
  const watched = client();
  const seen = [];
  watched.use(async (request, next) => {
    seen.push(request.body);
    return next(request);
  });
  await watched.get("w:k");
  assert.deepEqual(seen, [["get", "w:k"]]);
});
