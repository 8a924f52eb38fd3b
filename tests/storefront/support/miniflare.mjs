// Runs built Workers in workerd for the tests, through Miniflare's API. Each Worker is independent of the others.
//
// stdin, a line of JSON each:
//   {id, bundle, vars?, migrations?, limits?, isolates?, home?}
//                                      starts a Worker. `bundle` and `migrations` are directories, `vars` the variables
//                                      and secrets. `migrations`: with a D1 database `DB` to which they were applied.
//                                      `limits`: with the rate limits of wrangler.toml. `isolates`: the number of
//                                      isolates, which share only the location cache. `home`: the variables of a home
//                                      tier; the isolates are then the edge tier
//   {id, stop: true}                   ends a Worker by SIGKILL
// stdout, a line of JSON each:
//   {id, urls}                         the Worker has started: the URLs of its isolates, then with `home` those of the
//                                      home tier and of its entry point `home`
//   {id, error}                        the Worker has not started
//   {id, log}                          a line of the Worker's log
//
// `GET {url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*` runs a cron trigger. `observer` answers the paths below `/test/`.
//
// The process ends when stdin closes, which also happens if its parent is killed. It leaves no workerd behind.

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

// Wraps the Worker, for the paths that only tests request:
// - `GET /test/progress`: the background tasks that have not ended (`background`), the requests to Redis before the last
//   response (`blocking`), and all bytes from Redis (`received`).
// - `POST /test/sql` runs a statement on D1.
// - `POST /test/database` sets a fault of D1, which `/test/sql` does not meet: `refused` executes nothing, `silent` never
//   answers, `reply-lost` executes statements that write and then fails. An empty text ends a fault, also below.
// - `POST /test/clock` sets the Worker's clock to the real time plus a number of milliseconds.
// - `POST /test/home` sets a fault of the home tier: `down` fails, `ill` answers 500 like the platform, `portal` answers
//   like another Worker, `silent` never answers, `stranger` gets requests without the key, `default` answers with the
//   entry point for visitors, `elsewhere` answers a POST with 204 as if another isolate had executed it,
//   `elsewhere-later` waits for the fault `elsewhere` with it, and `newer` sends headers of an unknown version. In the
//   middle of a page that is handed over, `halts` stops and `ends` closes the body. `breaks` breaks every body off.
// - `GET /test/hops`: the requests that reached the home tier's entry point since the last call.
// - `POST /test/cache` sets a fault of the location cache: `lost` deletes each requested entry, `broken` fails.
// - `GET /test/cache/{name}` reads an entry.
// - `POST /test/panic` imitates a panic of Rust: the hook of the crate `worker` sets a flag, and wasm traps.
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
			// The response is complete: all later requests are those of background work.
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
			if (homeFault.startsWith("elsewhere") && request.method === "POST" && !isBatch) {
				while (homeFault !== "elsewhere") await new Promise((resolve) => setTimeout(resolve, 10));
				const headers = { "cache-status": "edgefront; fwd=method", "edge-tier-changed": Date.now() + " 1" };
				return new Response(null, { status: 204, headers });
			}
			if (homeFault === "ill") return new Response("error code: 1104", { status: 500 });
			if (homeFault === "portal") return new Response("<h1>portal</h1>", { headers: { "content-type": "text/html" } });
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
	const setters = {
		"/test/home": (fault) => (homeFault = fault),
		"/test/cache": (fault) => (cacheFault = fault),
		"/test/database": (fault) => (databaseFault = fault),
		"/test/clock": (milliseconds) => (offset = Number(milliseconds)),
	};
	export default {
		async fetch(request, env, context) {
			const { pathname } = new URL(request.url);
			if (pathname === "/test/progress") return Response.json({ background, blocking, received });
			const setter = setters[pathname];
			if (setter) {
				setter(await request.text());
				return new Response(null, { status: 204 });
			}
			if (pathname === "/test/hops") return Response.json(hops.splice(0));
			if (pathname.startsWith("/test/cache/")) {
				const found = await match.call(await caches.open("edgefront"), address(pathname.slice(12)));
				return found ?? new Response(null, { status: 404 });
			}
			if (pathname === "/test/sql") return prepare(await request.text()).all().then(({ results }) => Response.json(results));
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
		// Otherwise Miniflare sends requests to the network, for `request.cf` and for telemetry.
		cf: false,
		telemetry: { enabled: false },
		unsafeTriggerHandlers: true,
		handleStructuredLogs: ({ level, message }) => tell({ id, log: `${level}: ${message}` }),
		handleRuntimeStdio: (_, stderr) => createInterface({ input: stderr }).on("line", (log) => tell({ id, log })),
	});
	// The form of the options that has `modules` has no option for static files.
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
