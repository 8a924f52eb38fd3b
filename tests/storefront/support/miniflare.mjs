// Runs the built Worker in workerd for the tests, through Miniflare's API; any number of them, each apart from the
// others.
//
// stdin, a line of JSON each:
//   {id, bundle, vars?, migrations?, limits?, isolates?, home?}
//                                      starts a Worker. bundle and migrations are directories, vars the variables and
//                                      secrets. With migrations it gets a D1 database `DB` that they were applied to,
//                                      with limits (true) the rate limits of wrangler.toml. So many isolates run
//                                      apart from each other and share the location's cache
//   {id, stop: true}                   ends it by SIGKILL
//                                      With home, the variables of a further Worker, the isolates are the edge tier,
//                                      and that Worker the home tier. Its address and that of its entry point `home`
//                                      follow those of the isolates
// stdout, a line of JSON each:
//   {id, urls} or {id, error}          it has started, with the address of each isolate, or why not
//   {id, log}                          a line that it logged
//
// `GET {url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*` fires a cron trigger; for `GET {url}/test/progress` see
// `observer`.
//
// It ends when stdin closes, and no workerd stays behind: a parent that is killed closes stdin too.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";

const config = await readFile(new URL("../../../wrangler.toml", import.meta.url), "utf8");
const [, compatibilityDate] = config.match(/^compatibility_date = "(.+)"/m);
const ratelimits = {};
for (const [, name, namespace, limit, period] of config.matchAll(
	/^name = "(\w+)"\nnamespace_id = "(\d+)"\nsimple = { limit = (\d+), period = (\d+) }/gm,
)) {
	ratelimits[name] = { namespace_id: namespace, simple: { limit: Number(limit), period: Number(period) } };
}
const running = new Map();

// Around the Worker, so that a test sees what no visitor can: how much work goes on behind answers (`background`), and
// how many requests to Redis were sent before the last answer (`blocking`), how many bytes came from Redis in all
// (`received`). `POST /test/sql` runs a statement on its
// D1. `POST /test/database` sets a fault between the Worker and its D1, which `/test/sql` does not meet: `refused` executes
// nothing, `silent` never answers, with `reply-lost` statements that write are executed and fail, an empty text ends the fault. `POST /test/clock` sets the clock that the Worker reads: to the real time and so many milliseconds more. `POST
// /test/home` sets a fault of the home tier: `down` fails, `ill` answers 500 as the platform does, `silent` never answers, `stranger` gets requests without the key, `default` answers as its entry point for visitors, `elsewhere` answers a POST 204 as if another isolate had executed it,
// `newer` hands pages over in a way, and has a header, that the edge tier does not know. A page that it hands over stops in its middle with `halts`, and ends there with `ends`; with `breaks`, each body breaks off in its middle. `GET /test/hops` lists the
// requests that reached its entry point since the last call. `POST /test/cache` sets a fault of the location's cache: `lost` deletes each entry that is asked for, `broken` fails. `GET
// /test/cache/{name}` reads an entry. `POST /test/panic` does what a panic of Rust does while the Worker reads a request: the hook of the crate
// `worker` sets a flag, and wasm traps. Nothing else is changed.
const observer = `
	import Shop, * as bundle from "./index.js";
	import { env as bindings } from "cloudflare:workers";
	const database = bindings.DB;
	const prepare = database?.prepare.bind(database), batch = database?.batch.bind(database);
	let databaseFault = "";
	const execute = async (query, writes) => {
		if (databaseFault === "silent") return new Promise(() => {});
		if (databaseFault === "refused") throw new Error("D1_ERROR: D1 DB is overloaded. Requests queued for too long.");
		const answer = await query();
		if (databaseFault === "reply-lost" && writes) throw new Error("D1_ERROR: Network connection lost.");
		return answer;
	};
	if (database) {
		const writing = new WeakSet();
		database.batch = (statements) => execute(() => batch(statements), statements.some((one) => writing.has(one)));
		database.prepare = (sql) => ({
			bind(...values) {
				const bound = prepare(sql).bind(...values);
				const all = bound.all.bind(bound);
				if (!sql.trimStart().startsWith("SELECT")) writing.add(bound);
				bound.all = () => execute(all, writing.has(bound));
				return bound;
			},
		});
	}
	let cacheFault = "";
	const { match, put } = Cache.prototype;
	const address = (name) => "https://edgefront.invalid/" + name;
	Cache.prototype.match = async function (request) {
		if (cacheFault === "broken") throw new Error("the cache is broken");
		if (cacheFault === "lost") await this.delete(request);
		return match.call(this, request);
	};
	Cache.prototype.put = async function (request, response) {
		if (cacheFault === "broken") throw new Error("the cache is broken");
		return put.call(this, request, response);
	};
	let background = 0, sent = 0, blocking = 0, received = 0, offset = 0;
	const platformNow = Date.now;
	Date.now = () => platformNow() + offset;
	const platformFetch = globalThis.fetch;
	const panics = {
		get method() {
			globalThis.__worker_init_state.criticalError = true;
			throw new WebAssembly.RuntimeError("unreachable");
		},
	};
	let hops = [], homeFault = "";
	const inTheMiddle = {
		halts: () => new Promise((resolve) => setTimeout(resolve, 60_000)),
		breaks: (body) => body.error(new Error("the home tier breaks off")),
		ends: (body) => body.close(),
	};
	const half = async (answer) => {
		const bytes = new Uint8Array(await answer.arrayBuffer());
		const start = (body) => body.enqueue(bytes.subarray(0, bytes.length / 2));
		return new Response(new ReadableStream({ start, pull: inTheMiddle[homeFault] }), answer);
	};
	const observed = async (handler, request, env, context) => {
		globalThis.fetch = (address, init) => {
			if (!String(address).startsWith(env.UPSTASH_REDIS_REST_URL)) return platformFetch(address, init);
			sent++;
			return platformFetch(address, init).then((response) => {
				received += Number(response.headers.get("content-length"));
				return response;
			});
		};
		const before = sent;
		let waited;
		const waitUntil = (work) => {
			// From here on, requests are of the work behind the answer, which is complete.
			waited ??= sent - before;
			background++;
			context.waitUntil(work.finally(() => background--));
		};
		const answer = await handler.fetch(request, env, { waitUntil });
		blocking = waited ?? sent - before;
		return answer;
	};
	export const home = {
		async fetch(request, env, context) {
			hops.push(request.method + " " + new URL(request.url).pathname);
			const isBatch = hops.at(-1).endsWith("/_edge/tier");
			if (homeFault === "elsewhere" && request.method === "POST" && !isBatch) return new Response(null, { status: 204 });
			if (homeFault === "ill") return new Response("error code: 1104", { status: 500 });
			if (homeFault === "down") throw new Error("the home tier is down");
			if (homeFault === "stranger") {
				request = new Request(request);
				request.headers.delete("edge-tier-key");
			}
			if (homeFault === "default") return observed(Shop, request, env, context);
			if (homeFault === "silent") await new Promise((resolve) => setTimeout(resolve, 60_000));
			const answer = await observed(bundle.home, request, env, context);
			if (homeFault === "breaks" || (homeFault in inTheMiddle && answer.headers.has("edge-tier-page"))) return half(answer);
			if (homeFault !== "newer") return answer;
			const newer = new Response(answer.body, answer);
			newer.headers.set("edge-tier-new", "1");
			if (newer.headers.has("edge-tier-page")) newer.headers.set("edge-tier-page", "another 0");
			return newer;
		},
	};
	export default {
		async fetch(request, env, context) {
			const { pathname } = new URL(request.url);
			if (pathname === "/test/progress") return Response.json({ background, blocking, received });
			if (pathname === "/test/hops") return Response.json(hops.splice(0));
			if (pathname === "/test/home") {
				homeFault = await request.text();
				return new Response(null, { status: 204 });
			}
			if (pathname === "/test/cache") {
				cacheFault = await request.text();
				return new Response(null, { status: 204 });
			}
			if (pathname.startsWith("/test/cache/")) {
				const found = await match.call(await caches.open("edgefront"), address(pathname.slice(12)));
				return found ?? new Response(null, { status: 404 });
			}
			if (pathname === "/test/sql") return prepare(await request.text()).all().then(({ results }) => Response.json(results));
			if (pathname === "/test/database") {
				databaseFault = await request.text();
				return new Response(null, { status: 204 });
			}
			if (pathname === "/test/clock") {
				offset = Number(await request.text());
				return new Response(null, { status: 204 });
			}
			if (pathname === "/test/panic") return Shop.fetch(panics, env, context);
			return observed(Shop, request, env, context);
		},
		scheduled(event, env, ctx) {
			return Shop.scheduled(event, env, ctx);
		},
	};
`;

const tell = (message) => console.log(JSON.stringify(message));

async function start({ id, bundle, vars = {}, migrations, limits, isolates = 1, home }) {
	const root = path.resolve(bundle);
	const names = Array.from({ length: isolates }, (_, number) => (number ? `edgefront-${number}` : "edgefront"));
	if (home) names.push("home");
	const isHome = (name) => name === "home";
	const workerOf = (name) => ({
		name,
		compatibilityDate,
		modulesRoot: root,
		modules: [
			{ type: "ESModule", path: path.join(root, "observer.js"), contents: observer },
			{ type: "ESModule", path: path.join(root, "index.js") },
			{ type: "CompiledWasm", path: path.join(root, "index_bg.wasm") },
		],
		bindings: isHome(name) ? home : vars,
		serviceBindings: home && !isHome(name) ? { HOME: { name: "home", entrypoint: "home" } } : {},
		ratelimits: limits ? ratelimits : {},
		d1Databases: migrations && (!home || isHome(name)) ? { DB: "test" } : {},
		unsafeDirectSockets: (isHome(name) ? ["default", "home"] : ["default"]).map((entrypoint) => ({
			host: "127.0.0.1",
			port: 0,
			entrypoint,
		})),
	});
	const options = convertV4MiniflareOptions({
		workers: names.map(workerOf),
		host: "127.0.0.1",
		port: 0,
		// Without these two Miniflare asks the network: for `request.cf`, and to say who uses it.
		cf: false,
		telemetry: { enabled: false },
		unsafeTriggerHandlers: true,
		handleStructuredLogs: ({ level, message }) => tell({ id, log: `${level}: ${message}` }),
		handleRuntimeStdio: (_, stderr) => createInterface({ input: stderr }).on("line", (log) => tell({ id, log })),
	});
	// The old form of the options, which has `modules`, knows no static files.
	for (const worker of options.workers) {
		worker.config.assets = { directory: path.join(root, "assets"), hasUserWorker: true };
	}
	const worker = new Miniflare(options);
	running.set(id, worker);
	const [first, ...others] = [worker.ready, ...names.slice(1).map((name) => worker.unsafeGetDirectURL(name))];
	if (home) others.push(worker.unsafeGetDirectURL("home", "home"));
	const urls = [await first, ...(await Promise.all(others))].map((url) => url.origin);
	if (migrations) await migrate(await worker.getD1Database("DB"), path.resolve(migrations));
	tell({ id, urls });
}

/** In the order of their names, as `wrangler d1 migrations apply` does. */
async function migrate(database, directory) {
	const files = (await readdir(directory)).filter((name) => name.endsWith(".sql")).sort();
	for (const file of files) {
		await database.prepare(await readFile(path.join(directory, file), "utf8")).run();
	}
}

async function stop(id) {
	const worker = running.get(id);
	running.delete(id);
	await worker?.dispose();
}

for await (const line of createInterface({ input: process.stdin })) {
	const { id, stop: ends, ...options } = JSON.parse(line);
	if (ends) stop(id).catch(() => {});
	else start({ id, ...options }).catch((error) => tell({ id, error: String(error?.message ?? error) }));
}
await Promise.allSettled([...running.keys()].map(stop));
