// The location's cache, through the platform's Cache API.

// `invalid` is no name of a host (RFC 6761 §6.4), so no visitor can request the address.
const address = (name) => `https://edgefront.invalid/${name}`;

let opened;

const cache = async () => {
	// Not `caches.default`: the platform's own cache for requests uses that one.
	opened ??= await caches.open("edgefront");
	return opened;
};

/** Resolves with the bytes of an entry; undefined if there is none, or if its stamp is `known`. */
export async function find(name, known, millis) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(reject, millis);
	});
	try {
		return await Promise.race([read(name, known), late]);
	} finally {
		clearTimeout(timer);
	}
}

async function read(name, known) {
	const found = await (await cache()).match(address(name));
	if (!found) return;
	if (found.headers.get("edge-stamp") === known) {
		await found.body?.cancel();
		return;
	}
	return new Uint8Array(await found.arrayBuffer());
}

/** Stores two pieces of bytes as one entry for so many seconds. */
export function keep(name, stamp, head, body, seconds) {
	// Copies at once: the memory of wasm may move.
	const bytes = new Uint8Array(head.length + body.length);
	bytes.set(head);
	bytes.set(body, head.length);
	return put(name, bytes, { "cache-control": `max-age=${seconds}`, "edge-stamp": stamp });
}

async function put(name, bytes, headers) {
	await (await cache()).put(address(name), new Response(bytes, { headers }));
}
