// Measures the memory of one isolate under load: V8's heap by the inspector, and the mappings of the workerd process.
// `cargo xtask bench --memory` starts it: memory.mjs WORKERD DIRECTORY PAGES. DIRECTORY holds the configuration and the
// modules of the Worker; in it, the address `http://origin.invalid` stands for the origin of this script.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";

const [, , workerd, directory, pages] = process.argv;
const PAGES = Number(pages);
const PAGE = "<p>A page of a shop: what it is called, what it costs, what else there is.</p>\n".repeat(1_280);
const LARGE_BODY = 100 << 20;
const CONNECTIONS = 32;

/** Pages of 100 KB, large bodies below /large, and no answer below /silent. */
const origin = http.createServer((request, response) => {
	if (request.url.startsWith("/silent")) return;
	if (request.url.startsWith("/large")) {
		response.writeHead(200, { "content-type": "application/octet-stream" });
		let left = LARGE_BODY;
		const chunk = Buffer.alloc(64 << 10);
		const send = () => {
			while (left > 0) {
				left -= chunk.length;
				if (!response.write(chunk)) return response.once("drain", send);
			}
			response.end();
		};
		return send();
	}
	response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "public, max-age=600" });
	response.end(`<h1>${request.url}</h1>\n${PAGE}`);
});
await new Promise((resolve) => origin.listen(0, "127.0.0.1", resolve));
const configuration = `${directory}/config.capnp`;
const text = readFileSync(configuration, "utf8").replaceAll("http://origin.invalid", `http://127.0.0.1:${origin.address().port}`);
// Without this limit, V8 collects garbage later than on the platform, which limits the memory of an isolate.
const limited = text.replace("sockets = [", 'v8Flags = ["--max-heap-size=128"],\n  sockets = [');
if (limited === text) throw new Error(`${configuration} has no sockets`);
writeFileSync(configuration, limited);

const worker = spawn(workerd, ["serve", "config.capnp", "--control-fd=1", "--inspector-addr=127.0.0.1:0"], {
	cwd: directory,
	stdio: ["ignore", "pipe", "ignore"],
});
// On SIGTERM, workerd would wait for the requests in progress.
process.on("exit", () => worker.kill("SIGKILL"));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const ports = await new Promise((resolve) => {
	let output = "";
	worker.stdout.on("data", (data) => {
		output += data;
		const port = (event) => Number(new RegExp(`${event},"port":(\\d+)`).exec(output)?.[1]);
		const [site, inspector] = [port('"listen","socket":"http"'), port('"listen-inspector"')];
		if (site && inspector) resolve({ site, inspector });
	});
});

const [target] = await (await fetch(`http://127.0.0.1:${ports.inspector}/json`)).json();
const inspector = new WebSocket(target.webSocketDebuggerUrl);
await new Promise((resolve) => (inspector.onopen = resolve));
const answers = new Map();
inspector.onmessage = ({ data }) => {
	const { id, result } = JSON.parse(data);
	answers.get(id)?.(result);
};
const ask = (method) =>
	new Promise((resolve) => {
		const id = answers.size + 1;
		answers.set(id, resolve);
		inspector.send(JSON.stringify({ id, method }));
	});

/**
 * Megabytes of the process: its wasm memory, and all resident memory. A wasm memory is the writable mapping before the
 * guard region of several GB that catches every 32-bit address.
 */
function mapped() {
	const mappings = [];
	for (const line of readFileSync(`/proc/${worker.pid}/smaps`, "utf8").split("\n")) {
		const range = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line);
		if (range) mappings.push({ rights: range[3], size: parseInt(range[2], 16) - parseInt(range[1], 16), resident: 0 });
		else if (line.startsWith("Rss:")) mappings.at(-1).resident = Number(/\d+/.exec(line)) / 1e3;
	}
	const isGuard = (mapping) => mapping?.rights === "---p" && mapping.size > 2 ** 31;
	const wasm = mappings.filter(({ rights }, index) => rights === "rw-p" && isGuard(mappings[index + 1]));
	return {
		wasm: Math.max(...wasm.map(({ size }) => size / 1e6)),
		resident: mappings.reduce((total, { resident }) => total + resident, 0),
	};
}

async function measure(state) {
	const { totalSize, backingStorageSize } = await ask("Runtime.getHeapUsage");
	const { wasm, resident } = mapped();
	const [heap, buffers] = [totalSize / 1e6, backingStorageSize / 1e6];
	const figures = [wasm, heap, buffers, wasm + heap + buffers, resident].map((megabytes) => megabytes.toFixed(0));
	console.log(`| ${[state, ...figures].join(" | ")} |`);
}

const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });

/** Requests a path. With `leaves`, the client leaves after so many milliseconds, or with the first bytes if it is 0. */
const get = (path, { leaves, connections = agent } = {}) =>
	new Promise((resolve) => {
		const request = http.get({ host: "127.0.0.1", port: ports.site, path, agent: leaves === undefined ? connections : false });
		const leave = () => resolve(request.destroy());
		request.on("error", () => resolve());
		request.on("response", (response) => {
			if (leaves === 0) return response.once("data", leave);
			response.on("error", () => resolve());
			response.resume().on("end", resolve);
		});
		if (leaves) setTimeout(leave, leaves);
	});

async function load(count, run, width = CONNECTIONS) {
	let next = 0;
	const worker = async () => {
		while (next < count) await run(next++);
	};
	await Promise.all(Array.from({ length: width }, worker));
}

console.log("| MB | wasm | V8 heap | buffers | sum | process |\n| --- | ---: | ---: | ---: | ---: | ---: |");
await get("/");
await measure("one page");
for (let part = 0; part < 4; part++) await load(PAGES / 4, (number) => get(`/products/p${(part * PAGES) / 4 + number}`));
await measure(`${PAGES} pages of 100 KB`);
await load(2 * PAGES, (number) => get(`/products/p${number % PAGES}`));
await measure(`${2 * PAGES} views`);
const many = new http.Agent({ keepAlive: true, maxSockets: 1000 });
const silent = load(1000, (number) => get(`/silent/${number}`, { connections: many }), 1000);
await new Promise((resolve) => setTimeout(resolve, 3_000));
await measure("1,000 requests in flight, a silent origin");
await silent;
await measure("all of them ended");
await load(2_000, (number) => get(`/products/a${number}`, { leaves: 1 + (number % 7) }));
await measure("2,000 clients that left early");
await load(20, (number) => get(`/large/${number}`), 4);
await measure("20 bodies of 105 MB");
await load(40, (number) => get(`/large/${number}`, { leaves: 0 }), 8);
await measure("40 that clients aborted");
process.exit(0);
