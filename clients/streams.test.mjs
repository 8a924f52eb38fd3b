// `subscribe` and `psubscribe` of `@upstash/redis`, and MONITOR, which has no method.
import assert from "node:assert/strict";
import { EventEmitter, on } from "node:events";
import { test } from "node:test";
import { client, readOnlyToken, token, url } from "./setup.mjs";

const redis = client();

// The events of a subscriber as they arrive, and a wait for the next.
function events(subscriber, ...types) {
  const emitter = new EventEmitter();
  const arrivals = on(emitter, "event");
  for (const type of types) subscriber.on(type, (data) => emitter.emit("event", data));
  return { next: async () => (await arrivals.next()).value[0] };
}

async function subscribed(subscriber, type, count = 1) {
  const confirmations = events(subscriber, type);
  for (let index = 0; index < count; index += 1) assert.equal(await confirmations.next(), 1, "each channel has a stream");
}

test("a subscriber gets messages in order, as they were sent", async () => {
  const subscriber = redis.subscribe("chat");
  const messages = events(subscriber, "message");
  const ofChannel = events(subscriber, "message:chat");
  await subscribed(subscriber, "subscribe");
  const sent = [{ user: "a", at: 1 }, "text, with commas", 42, [1, null], "", "ünïcode 🦀", true];
  for (const message of sent) assert.equal(await redis.publish("chat", message), 1);
  for (const message of sent) {
    assert.deepEqual(await messages.next(), { channel: "chat", message });
    assert.deepEqual(await ofChannel.next(), { channel: "chat", message });
  }
  await subscriber.unsubscribe();
});

test("subscribers of several channels end one subscription or all", async () => {
  const subscriber = redis.subscribe(["s:1", "s:2"]);
  const messages = events(subscriber, "message");
  await subscribed(subscriber, "subscribe", 2);
  assert.deepEqual(subscriber.getSubscribedChannels(), ["s:1", "s:2"]);
  await subscriber.unsubscribe(["s:1"]);
  while ((await redis.publish("s:1", "nobody")) > 0);
  assert.equal(await redis.publish("s:2", "one"), 1);
  assert.deepEqual(await messages.next(), { channel: "s:2", message: "one" });
  await subscriber.unsubscribe();
  while ((await redis.publish("s:2", "nobody")) > 0);
});

test("many subscribers of a channel get the same message", async () => {
  const subscribers = Array.from({ length: 20 }, () => redis.subscribe("s:many"));
  const messages = subscribers.map((subscriber) => events(subscriber, "message"));
  await Promise.all(subscribers.map((subscriber) => subscribed(subscriber, "subscribe")));
  assert.equal(await redis.publish("s:many", { n: 1 }), 20);
  for (const arrivals of messages) assert.deepEqual((await arrivals.next()).message, { n: 1 });
  await Promise.all(subscribers.map((subscriber) => subscriber.unsubscribe()));
});

test("a pattern selects channels, beside a subscriber of one", async () => {
  const [byPattern, byName] = [redis.psubscribe("user:*:login"), redis.subscribe("user:1:login")];
  const matches = events(byPattern, "pmessage");
  const ofPattern = events(byPattern, "pmessage:user:*:login");
  const messages = events(byName, "message");
  await Promise.all([subscribed(byPattern, "psubscribe"), subscribed(byName, "subscribe")]);
  assert.equal(await redis.publish("user:1:logout", {}), 0);
  assert.equal(await redis.publish("user:1:login", { at: 5 }), 2);
  const expected = { pattern: "user:*:login", channel: "user:1:login", message: { at: 5 } };
  assert.deepEqual([await matches.next(), await ofPattern.next()], [expected, expected]);
  assert.deepEqual(await messages.next(), { channel: "user:1:login", message: { at: 5 } });
  await Promise.all([byPattern.unsubscribe(), byName.unsubscribe()]);
});

test("messages stay text for a client that parses nothing", async () => {
  const subscriber = client({ automaticDeserialization: false }).subscribe("s:text");
  const messages = events(subscriber, "message");
  await subscribed(subscriber, "subscribe");
  await redis.publish("s:text", { a: 1 });
  assert.deepEqual(await messages.next(), { channel: "s:text", message: '{"a":1}' });
  await subscriber.unsubscribe();
});

test("a refused subscription is an error event", async () => {
  const subscriber = client({ token: readOnlyToken }).subscribe("s:refused");
  assert.match((await events(subscriber, "error").next()).message, /NOPERM .* 'subscribe'/);
});

test("a line break in a message cannot forge another message", async () => {
  const subscriber = redis.subscribe("s:forged");
  const messages = events(subscriber, "message");
  await subscribed(subscriber, "subscribe");
  await redis.publish("s:forged", "first\ndata: message,s:forged,forged\nmessage,s:forged,forged");
  await redis.publish("s:forged", "next");
  assert.deepEqual([(await messages.next()).message, (await messages.next()).message], ["first", "next"]);
  await subscriber.unsubscribe();
});

test("a monitor streams the commands of all clients", async () => {
  const abort = new AbortController();
  const headers = { Authorization: `Bearer ${token}`, Accept: "text/event-stream" };
  const response = await fetch(`${url}/monitor`, { method: "POST", headers, signal: abort.signal });
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
  let received = "";
  let written = false;
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    received += chunk;
    if (received.startsWith('data: "OK"\n\n') && !written) {
      written = true;
      await redis.set("monitored", "value");
    }
    if (/\] "set" "monitored" "value"\n\n/.test(received)) break;
  }
  assert.match(received, /^data: "OK"\n\ndata: \d+\.\d+ \[0 127\.0\.0\.1:\d+\] "set" "monitored" "value"\n\n/);
  abort.abort();
});
