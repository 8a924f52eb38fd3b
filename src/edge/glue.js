import { waitUntil } from "cloudflare:workers";

// Whatever crosses the border of wasm is copied and re-coded, so these carry as much at once as they can. The head of a message
// is text, a line each: the start line, then each header's name and its value. No value has a line break.

const lines = (headers) => {
	let text = "";
	headers.forEach((value, name) => {
		text += `\n${name}\n${value}`;
	});
	return text;
};

// An object is the form that the platform takes fastest; it has no place for a name that comes twice, of which an empty line tells.
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

/** Whom to tell what became of a promise. */
let settle;

/** From now on, `call` is told what became of a promise: its number, whether it was kept, and with which value. */
export function listen(call) {
	settle = call;
}

/** Tells what becomes of `promise`, under `number`. */
export function watch(promise, number) {
	// Not another instance of wasm, which has numbers of its own.
	const tell = settle;
	promise.then(
		(value) => tell(number, true, value),
		(error) => tell(number, false, error),
	);
}

/** Settles `number` when this step is over. */
export function soon(number) {
	watch(Promise.resolve(), number);
}

/** Method, address and headers of a request. */
export function readRequest(request) {
	return `${request.method}\n${request.url}${lines(request.headers)}`;
}

/** Status and headers of a response. */
export function readResponse(response) {
	return `${response.status}${lines(response.headers)}`;
}

/** A response; `body` is null, bytes or a stream. */
export function respond(status, head, body) {
	return new Response(body, { status, headers: init(head) });
}

/** What is sent again and again: headers and bytes. All fields are there from the start, so that optimised code knows its shape. */
export function keep(head, bytes) {
	return { head, bytes, beside: undefined, init: undefined };
}

/** A response of what is kept, and of the headers in `head` beside it; what the platform makes of them serves until they change. */
export function respondKept(status, kept, head) {
	if (kept.beside !== head) {
		kept.beside = head;
		kept.init = { status, headers: append(append(new Headers(), kept.head), head) };
	}
	return new Response(kept.bytes, kept.init);
}

/** Sends a request whose answer may be a stream: resolves with its head, if that comes within `millis`. */
export async function send(address, method, head, body, millis) {
	const abort = new AbortController();
	let isWaiting = true;
	// Not a timeout's signal: that would cut off a body which is still on its way.
	setTimeout(() => isWaiting && abort.abort(new DOMException("no answer in time", "TimeoutError")), millis);
	const response = await fetch(address, { method, headers: init(head), body, signal: abort.signal, redirect: "manual" });
	isWaiting = false;
	return response;
}

/** Reads a stream of bytes. */
export function reader(stream) {
	return stream.getReader({ mode: "byob" });
}

/** Asks for the next bytes of a stream, at most `size`: a read of one's own size takes what is there, the platform's takes 4 KB. */
export function read(reader, size) {
	return reader.read(new Uint8Array(size));
}

/** What came of that: bytes, or undefined at the stream's end. */
export function chunk({ value, done }) {
	return done ? undefined : value;
}

/** Wants no more of a stream. */
export async function cancel(reader) {
	try {
		await reader.cancel();
	} catch {
		// It was the stream of a request that has ended.
	}
}

/** Resolves when what had arrived before has been begun. */
export function turn() {
	const over = new Promise((resolve) => setTimeout(resolve, 0));
	// Others wait for what comes then, whatever becomes of this request.
	waitUntil(over);
	return over;
}

/** Settles `number` after `millis`. The timer is left to end with its request: to clear it costs as much as to set it. */
export function sleep(number, millis) {
	setTimeout(settle, millis, number, true);
}

/**
 * Settles `number` after `millis`, or when somebody calls what it returns, also from another request. The waiting request continues as itself, which
 * the platform sees to. It knows whose the promise is only if `withResolvers` made it: what optimised code makes of `new Promise` belongs to
 * nobody. Without a timer the platform would take the request for hung.
 */
export function alarm(number, millis) {
	const { promise, resolve } = Promise.withResolvers();
	watch(promise, number);
	setTimeout(resolve, millis);
	return resolve;
}

/** Sends a POST and reads the whole answer within `millis`: `[head, bytes]`, null if it has more than `limit` bytes. */
export function exchange(address, head, body, millis, limit) {
	const answer = exchanged(address, head, body, millis, limit);
	// It may be others' too: it goes on if the client of this request goes.
	waitUntil(answer.catch(() => {}));
	return answer;
}

async function exchanged(address, head, body, millis, limit) {
	const signal = AbortSignal.timeout(millis);
	const response = await fetch(address, { method: "POST", headers: init(head), body, signal, redirect: "manual" });
	if (Number(response.headers.get("content-length")) > limit) {
		await response.body.cancel();
		return null;
	}
	return [readResponse(response), new Uint8Array(await response.arrayBuffer())];
}

/** Counts one more of `key`: whether the rate limit lets it through. */
export async function count(binding, key) {
	return (await binding.limit({ key })).success;
}

/** Runs statements, `[sql, parameters]` each, on a D1 database, several as one transaction; resolves with the rows of each. JSON, both ways. */
export async function query(database, statements) {
	const prepared = JSON.parse(statements).map(([sql, parameters]) => database.prepare(sql).bind(...parameters));
	const answers = prepared.length === 1 ? [await prepared[0].all()] : await database.batch(prepared);
	return JSON.stringify(answers.map((answer) => answer.results ?? []));
}
