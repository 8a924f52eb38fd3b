import { waitUntil } from "cloudflare:workers";

// Whatever crosses the border of wasm is copied and re-coded, so these carry as much at once as they can. The head of a message
// is text, a line each: what begins it, then the name of a header and its value by turns. No value has a line break.

const lines = (headers) => {
	let text = "";
	headers.forEach((value, name) => {
		text += `\n${name}\n${value}`;
	});
	return text;
};

// An object is the form that the platform takes fastest; it has no place for a name that comes twice.
const init = (head) => {
	const parts = head === "" ? [] : head.split("\n");
	const record = {};
	for (let n = 0; n + 1 < parts.length; n += 2) {
		if (parts[n] in record) return repeated(parts);
		record[parts[n]] = parts[n + 1];
	}
	return record;
};

const repeated = (parts) => {
	const headers = new Headers();
	for (let n = 0; n + 1 < parts.length; n += 2) headers.append(parts[n], parts[n + 1]);
	return headers;
};

// For every step of a future in wasm. The platform's own wraps each call; a promise does the same at a third of the cost.
globalThis.queueMicrotask = (call) => void Promise.resolve().then(call);

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

/** What is sent again and again: headers and bytes. */
export function keep(head, bytes) {
	return { head, bytes };
}

/** A response of what is kept, and of the headers in `head` beside it; what the platform makes of them serves until they change. */
export function respondKept(status, kept, head) {
	if (kept.beside !== head) {
		kept.beside = head;
		kept.init = { status, headers: new Headers(init(`${kept.head}\n${head}`)) };
	}
	return new Response(kept.bytes, kept.init);
}

/** Sends a request whose answer may be a stream: resolves with its head. */
export function send(address, method, head, body, signal) {
	return fetch(address, { method, headers: init(head), body, signal, redirect: "manual" });
}

/** Reads a stream of bytes. */
export function reader(stream) {
	return stream.getReader({ mode: "byob" });
}

/** The next bytes of a stream, at most 32 KB: a read of one's own size takes what is there, the platform's takes 4 KB. Undefined at its end. */
export async function nextChunk(reader) {
	const { value, done } = await reader.read(new Uint8Array(32 << 10));
	return done ? undefined : value;
}

/** Wants no more of a stream. */
export function cancel(reader) {
	reader.cancel().catch(() => {});
}

/** Resolves when what had arrived before has been begun. */
export function turn() {
	const over = new Promise((resolve) => setTimeout(resolve, 0));
	// Others wait for what comes then, whatever becomes of this request.
	waitUntil(over);
	return over;
}

/**
 * `over` resolves after `millis`, or when somebody calls `ring`, be it another request; whoever waits goes on as its own, which the platform
 * sees to. It knows whose the promise is only if `withResolvers` made it: what optimised code makes of `new Promise` belongs to nobody. The timer is
 * left to end with its request: to clear it costs as much as to set it. Without one the platform would take the request for hung.
 */
export function alarm(millis) {
	const { promise, resolve } = Promise.withResolvers();
	setTimeout(resolve, millis);
	return { over: promise, ring: () => resolve() };
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
