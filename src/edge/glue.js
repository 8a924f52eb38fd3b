// Whatever crosses the border of wasm is copied and re-coded, so these carry as much at once as they can. The head of a message
// is text, a line each: what begins it, then the name of a header and its value by turns. No value has a line break.

const lines = (headers) => {
	let text = "";
	for (const [name, value] of headers) text += `\n${name}\n${value}`;
	return text;
};

const pairs = (head) => {
	const parts = head === "" ? [] : head.split("\n");
	const headers = [];
	for (let n = 0; n + 1 < parts.length; n += 2) headers.push([parts[n], parts[n + 1]]);
	return headers;
};

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
	return new Response(body, { status, headers: pairs(head) });
}

/** Sends a request whose answer may be a stream: resolves with its head. */
export function send(address, method, head, body, signal) {
	return fetch(address, { method, headers: pairs(head), body, signal, redirect: "manual" });
}

/** Sends a POST and reads the whole answer within `millis`: `[head, bytes]`, null if it has more than `limit` bytes. */
export async function exchange(address, head, body, millis, limit) {
	const signal = AbortSignal.timeout(millis);
	const response = await fetch(address, { method: "POST", headers: pairs(head), body, signal, redirect: "manual" });
	if (Number(response.headers.get("content-length")) > limit) {
		await response.body.cancel();
		return null;
	}
	return [readResponse(response), new Uint8Array(await response.arrayBuffer())];
}
