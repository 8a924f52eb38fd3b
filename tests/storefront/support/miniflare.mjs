// Runs the built Worker in workerd for the tests, through Miniflare's API.
//
// stdin:  for each Worker to start a line of JSON, {bundle, vars?, migrations?, port?}
// stdout: for each a line of JSON, in the same order, {url, scheduled} or {error}
// stderr: what the Workers log
//
// bundle and migrations are directories, vars the Worker's variables and secrets; with migrations it gets a D1 database `DB` of its own that
// they were applied to. `GET {scheduled}?cron=*+*+*+*+*` fires a cron trigger. The first Worker takes 1 to 2 s, each further one 0.3 s.
//
// It ends when stdin closes, and no workerd stays behind: a parent that is killed closes stdin too.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";

const config = await readFile(new URL("../../../wrangler.toml", import.meta.url), "utf8");
const [, compatibilityDate] = config.match(/^compatibility_date = "(.+)"/m);
const running = [];

async function start(line) {
	const { bundle, vars = {}, migrations, port = 0 } = JSON.parse(line);
	const root = path.resolve(bundle);
	const worker = new Miniflare(
		convertV4MiniflareOptions({
			name: "edgefront",
			compatibilityDate,
			modulesRoot: root,
			modules: [
				{ type: "ESModule", path: path.join(root, "index.js") },
				{ type: "CompiledWasm", path: path.join(root, "index_bg.wasm") },
			],
			bindings: vars,
			d1Databases: migrations ? { DB: "test" } : {},
			host: "127.0.0.1",
			port,
			// Without these two Miniflare asks the network: for `request.cf`, and to say who uses it.
			cf: false,
			telemetry: { enabled: false },
			unsafeTriggerHandlers: true,
			handleStructuredLogs: ({ level, message }) => console.error(`${level}: ${message}`),
		}),
	);
	running.push(worker);
	const url = await worker.ready;
	if (migrations) await migrate(await worker.getD1Database("DB"), path.resolve(migrations));
	return { url: url.origin, scheduled: new URL("/cdn-cgi/local/scheduled", url).href };
}

/** In the order of their names, as `wrangler d1 migrations apply` does. */
async function migrate(database, directory) {
	const files = (await readdir(directory)).filter((name) => name.endsWith(".sql")).sort();
	for (const file of files) {
		await database.prepare(await readFile(path.join(directory, file), "utf8")).run();
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	const reply = await start(line).catch((error) => ({ error: String(error?.message ?? error) }));
	console.log(JSON.stringify(reply));
}
await Promise.all(running.map((worker) => worker.dispose()));
