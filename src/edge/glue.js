import { waitUntil } from "cloudflare:workers";

// Calls from wasm to JavaScript copy and re-encode their arguments, so each call carries as much as possible. The head
// of a message is one text: the start line, then two lines for each header, its name and its value. No value has a line
// break.

const lines = (headers) => {
	let text = "";
	headers.forEach((value, name) => {
		text += `\n${name}\n${value}`;
	});
	return text;
};

// The platform reads an object fastest. An object cannot hold a name twice, so a head with a repeated name begins with
// an empty line.
const init = (head) => {
	if (head.startsWith("\n")) return append(new Headers(), head);
	const parts = head.split("\n");
	const record = {};
	for (let n = 0; n + 1 < parts.length; n += 2) record[parts[n]] = parts[n + 1];
	return record;
};

const append = (headers, head) => {
	const parts = head.split("\n");
	for (let n = parts[0] === "" ? 1 : 0; n + 1 < parts.length; n += 2) headers.append(parts[n], parts[n + 1]);
	return headers;
};

/** The callback for settled promises. */
let settle;

/** Sets the callback for settled promises: `call(number, isFulfilled, value)`. */
export function listen(call) {
	settle = call;
}

/** Calls the callback with `number` when `promise` settles. */
export function watch(promise, number) {
	// Not a later instance of wasm: it has its own numbers.
	const tell = settle;
	promise.then(
		(value) => tell(number, true, value),
		(error) => tell(number, false, error),
	);
}

/** Settles `number` after the current step. */
export function soon(number) {
	watch(Promise.resolve(), number);
}

// The platform resolves backslashes and dot segments in every spelling when it sends a request on. Unresolved, they would hide
// the path from all decisions before that, such as those of the edge tier.
const UNRESOLVED = /^[^?]*(\\|\/\.|\/%2e)/i;

/** Method, address and headers of a request. */
export function readRequest({ method, url, headers }) {
	const address = UNRESOLVED.test(url) ? (URL.parse(url)?.href ?? url) : url;
	return `${method}\n${address}${lines(headers)}`;
}

/** Status and headers of a response. */
export function readResponse(response) {
	return `${response.status}${lines(response.headers)}`;
}

/** A response; `body` is null, bytes or a stream. */
export function respond(status, head, body) {
	return new Response(body, { status, headers: init(head) });
}

/** A response that passes on the WebSocket of the response `opened`. The platform copies the messages. */
export function respondWebSocket({ webSocket }, head) {
	return new Response(null, { status: 101, headers: init(head), webSocket });
}

/** Headers and bytes that are sent often. All fields exist from the start, so that optimised code knows the shape. */
export function keep(head, bytes) {
	return { head, bytes, beside: undefined, init: undefined };
}

/** A response from `kept` and the headers in `head`. Its platform objects are reused until `head` changes. */
export function respondKept(status, kept, head) {
	if (kept.beside !== head) {
		kept.beside = head;
		kept.init = { status, headers: append(append(new Headers(), kept.head), head) };
	}
	return new Response(kept.bytes, kept.init);
}

/** Sends a request. Resolves with the response when its head arrives; rejects if that takes longer than `millis`. */
export async function send(address, method, head, body, millis) {
	const abort = new AbortController();
	let isWaiting = true;
	// Not `AbortSignal.timeout`: it would cut off a body that is still arriving.
	setTimeout(() => isWaiting && abort.abort(new DOMException("no answer in time", "TimeoutError")), millis);
	const response = await fetch(address, { method, headers: init(head), body, signal: abort.signal, redirect: "manual" });
	isWaiting = false;
	return response;
}

/** As `send`, through a service binding. */
export async function sendHome(binding, address, method, head, body, millis) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new DOMException("no answer in time", "TimeoutError")), millis);
	});
	try {
		const sent = binding.fetch(address, { method, headers: init(head), body, redirect: "manual" });
		return await Promise.race([sent, late]);
	} finally {
		clearTimeout(timer);
	}
}

/** Reads a stream of bytes. */
export function reader(stream) {
	return stream.getReader({ mode: "byob" });
}

/** The size of a read buffer, bytes. */
const BUFFER = 32 << 10;
/** Read buffers, at most 1 MB. V8 frees buffers late: without the pool, a burst of long bodies leaves tens of megabytes. */
const bufferPool = [];
const MAX_POOLED = 32;

/** Reads the next bytes of a stream, at most `size`. A buffer gets all available bytes; the default read gets 4 KB. */
export function read(reader, size) {
	const buffer = bufferPool.pop() ?? new ArrayBuffer(BUFFER);
	return reader.read(new Uint8Array(buffer, 0, Math.min(size, BUFFER)));
}

/** The bytes of a read, valid until `reuse`; undefined at the stream's end. */
export function chunk({ value, done }) {
	if (!done) return value;
	if (value) reuse(value);
}

/** Returns a read's buffer to the pool. Copy its bytes first: the next read, perhaps another visitor's, overwrites them. */
export function reuse({ buffer }) {
	if (buffer.byteLength === BUFFER && bufferPool.length < MAX_POOLED) bufferPool.push(buffer);
}

/** Cancels a stream. */
export async function cancel(reader) {
	try {
		await reader.cancel();
	} catch {
		// The request of the stream has ended.
	}
}

/**
 * Returns a stream of `first` and then the rest of `stream`. Releases `reader`, which must have no pending read. The
 * platform copies the rest, so it does not enter wasm.
 */
export function passOn(reader, stream, first) {
	const { readable, writable } = new IdentityTransformStream();
	// A copy: `first` is a view of wasm's memory, valid only during this call.
	const begin = new Uint8Array(first);
	reader.releaseLock();
	const copy = async () => {
		const writer = writable.getWriter();
		if (begin.length > 0) await writer.write(begin);
		writer.releaseLock();
		await stream.pipeTo(writable);
	};
	// Fails if the visitor leaves or the origin breaks off. Then the origin's connection is released.
	copy()
		.catch((cause) => stream.cancel(cause))
		.catch(() => {});
	return readable;
}

/** Returns a stream of the `length` bytes of `stream`. The platform sends it with its length, not chunked. */
export function ofLength(stream, length) {
	const { readable, writable } = new FixedLengthStream(length);
	// Fails if the visitor leaves or the origin breaks off. Then the other end of the stream fails, too.
	stream.pipeTo(writable).catch(() => {});
	return readable;
}

/** Resolves after the events that have arrived before have run. */
export function turn() {
	const over = new Promise((resolve) => setTimeout(resolve, 0));
	// Other requests wait for this one's next step, so it must run even if this request's client leaves.
	waitUntil(over);
	return over;
}

/**
 * Lets the current request go on until `work` settles, even if its client leaves. Otherwise the platform ends the request: a
 * render would keep its lease, a change by the origin would void no page, and the task would stay in wasm's memory.
 */
export function outlive(work) {
	waitUntil(work);
}

/** Settles `number` after `millis`. The timer ends with its request: clearing it would cost as much as setting it. */
export function sleep(number, millis) {
	setTimeout(settle, millis, number, true);
}

/**
 * Settles `number` after `millis`, or when the returned function is called. Another request may call it: the platform
 * continues the waiting request in its own context. The platform knows the promise's request only if `withResolvers`
 * made the promise; optimised code loses the request of a `new Promise`. Without a timer the platform would end the
 * request as hung.
 */
export function alarm(number, millis) {
	const { promise, resolve } = Promise.withResolvers();
	watch(promise, number);
	setTimeout(resolve, millis);
	return resolve;
}

/** The callback for the responses of exchanges. */
let deliver;

/**
 * Sets the callback for the responses of exchanges: `call(number, status, token, text, bytes)`. Without a response,
 * `status` is 0, or 1 if its time was over.
 */
export function listenExchanges(call) {
	deliver = call;
}

/** The latest head of an exchange, and its headers. Nearly all exchanges have the same. */
let latestHead;
let latestHeaders;

const headersOf = (head) => {
	if (head !== latestHead) {
		latestHead = head;
		latestHeaders = init(head);
	}
	return latestHeaders;
};

/**
 * Sends a POST. Delivers the whole response within `millis`: status, sync token, and the body. The body is text if
 * `isShort`, because a short text is cheaper than an `ArrayBuffer`. A body of more than
 * `limit` bytes counts as no response.
 */
export function exchange(number, address, head, body, millis, limit, isShared, isShort) {
	// Not a later instance of wasm: it has its own numbers.
	const tell = deliver;
	const signal = AbortSignal.timeout(millis);
	const check = (length) => {
		if (length > limit) throw new RangeError("the response is too long");
	};
	const read = async (response) => {
		const { status, headers } = response;
		check(Number(headers.get("content-length")));
		const token = headers.get("upstash-sync-token") ?? undefined;
		const text = isShort ? await response.text() : undefined;
		const bytes = isShort ? undefined : new Uint8Array(await response.arrayBuffer());
		// A compressed or chunked response did not tell its length.
		check((text ?? bytes).length);
		tell(number, status, token, text, bytes);
	};
	const answer = fetch(address, { method: "POST", headers: headersOf(head), body, signal, redirect: "manual" });
	const end = answer.then(read).catch((error) => tell(number, error?.name === "TimeoutError" ? 1 : 0));
	// A shared exchange continues if the client of this request leaves.
	if (isShared) waitUntil(end);
}

/** Counts `key`. Resolves with true if it is within the rate limit. */
export async function count(binding, key) {
	return (await binding.limit({ key })).success;
}

/**
 * Runs statements on a D1 database, several as one transaction. `statements` is a JSON list of `[sql, parameters]`.
 * Resolves with a JSON list of each statement's rows.
 */
export async function query(database, statements) {
	const prepared = JSON.parse(statements).map(([sql, parameters]) => database.prepare(sql).bind(...parameters));
	const answers = prepared.length === 1 ? [await prepared[0].all()] : await database.batch(prepared);
	return JSON.stringify(answers.map((answer) => answer.results ?? []));
}

/** Fails if a selector is invalid. `selectors` is a JSON list. */
export function checkSelectors(selectors) {
	for (const selector of JSON.parse(selectors)) {
		try {
			new HTMLRewriter().on(selector, {});
		} catch (error) {
			throw new Error(`${JSON.stringify(selector)}: ${error.message}`);
		}
	}
}

/** Marks the elements of a page that `selectors`, a JSON list, match. The marks are those of `Marks::of_kind`. */
export async function markElements(html, selectors, id) {
	const rewriter = new HTMLRewriter();
	JSON.parse(selectors).forEach((selector, index) => {
		const mark = `${id}${String(index).padStart(2, "0")}`;
		rewriter.on(selector, {
			element(element) {
				element.before(`${mark}<`, { html: true });
				element.prepend(`${mark}[`, { html: true });
				element.append(`${mark}]`, { html: true });
				element.after(`${mark}>`, { html: true });
			},
		});
	});
	const marked = rewriter.transform(new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } }));
	return new Uint8Array(await marked.arrayBuffer());
}
