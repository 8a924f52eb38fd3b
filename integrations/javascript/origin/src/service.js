// Calls of edgefront's service API. Purges are collected and sent in the background.

import { isItem, isTag } from './edge.js';

/** Bytes of names in one call. edgefront accepts a body of 64 KiB. */
const MAX_BYTES = 12_000;
/** If more names wait, one soft purge of all pages replaces them. */
const MAX_WAITING = 5_000;
const TIMEOUT = 5_000;

const CHECKS = { items: isItem, tags: isTag, urls: (url) => url !== '' };

export class Service {
  #api;
  #key;
  #pauses;
  #waiting = new Map();
  #sending = null;

  /** `pauses`: milliseconds before each retry. */
  constructor({ url, key, pauses = [500, 2_000, 8_000] }) {
    if (!/^https?:\/\//.test(url)) throw new TypeError('url must begin with http:// or https://');
    this.#api = `${url.replace(/\/+$/, '')}/_edge/v1`;
    this.#key = key;
    this.#pauses = pauses;
  }

  /** Purges `{ items, tags, urls }` soon. Never throws for a name. */
  purge(names) {
    for (const [kind, isValid] of Object.entries(CHECKS)) {
      for (const given of names[kind] ?? []) {
        const name = String(given);
        if (isValid(name)) this.#waiting.set(`${kind} ${name}`, [kind, name]);
        else console.error(`edgefront cannot purge ${kind} ${JSON.stringify(name)}: the name is not valid`);
      }
    }
    if (this.#waiting.size > MAX_WAITING) {
      console.warn(`edgefront: more than ${MAX_WAITING} names wait for a purge: purging all pages`);
      this.#waiting = new Map([['all', ['all']]]);
    }
    if (this.#waiting.size > 0) this.#sending ??= this.#run();
  }

  /** Resolves when all purges were sent or given up. In a Worker: `context.waitUntil(service.flush())`. */
  async flush() {
    while (this.#sending) await this.#sending;
  }

  /** Ends all sessions of a user at edgefront. Call it after a change of the password. */
  endSessions(user) {
    return this.#send('DELETE', `/users/${encodeURIComponent(user)}/sessions`);
  }

  /** Reports an order that no visitor's request placed. */
  reportOrder(order) {
    return this.#send('POST', '/orders', order);
  }

  /** Refreshes a row every `every` seconds. 0 deletes its schedule and its copy. */
  scheduleRow(row, every) {
    return this.#send('PUT', `/rows/${encodeURIComponent(row)}/schedule`, { every });
  }

  async #run() {
    // Collects the names of this turn.
    await null;
    while (this.#waiting.size > 0) {
      const names = [...this.#waiting.values()];
      this.#waiting = new Map();
      for (const body of bodies(names)) await this.#send('POST', '/purge', body);
    }
    this.#sending = null;
  }

  async #send(method, path, body) {
    const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' };
    for (const pause of [...this.#pauses, null]) {
      let cause;
      let isTemporary = true;
      try {
        // A redirect would send the key to another address.
        const options = { method, headers, body: body && JSON.stringify(body), redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT) };
        const response = await fetch(this.#api + path, options);
        await response.body?.cancel();
        if (response.ok) return true;
        cause = `status ${response.status}`;
        isTemporary = response.status >= 500 || response.status === 429;
      } catch (error) {
        cause = error.cause?.code ?? error.name;
      }
      if (pause === null || !isTemporary) {
        console.error(`edgefront: ${method} ${path} failed: ${cause}`);
        return false;
      }
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
    return false;
  }
}

function* bodies(names) {
  if (names[0]?.[0] === 'all') {
    yield { all: true, soft: true };
    return;
  }
  let [body, size] = [{}, 0];
  for (const [kind, name] of names) {
    // UTF-8: a character has up to four bytes.
    const length = new TextEncoder().encode(JSON.stringify(name)).length + 1;
    if (size + length > MAX_BYTES && size > 0) {
      yield body;
      [body, size] = [{}, 0];
    }
    (body[kind] ??= []).push(name);
    size += length;
  }
  yield body;
}
