// The common part of all tests of the npm clients: a client in front of an empty database, and the record of its calls.
import { readFileSync } from "node:fs";
import { Redis } from "@upstash/redis";

export const url = process.env.UPSTASH_REDIS_REST_URL;
export const token = process.env.UPSTASH_REDIS_REST_TOKEN;
export const readOnlyToken = process.env.UPSTASH_REDIS_REST_READONLY_TOKEN;
// Gateways in front of three databases.
export const regionUrls = process.env.EDGEFRONT_REGION_URLS?.split(",") ?? [];

// A client that fails at once, because the tests must see the first answer, and that sends each command by itself.
const options = { url, token, retry: false, enableTelemetry: false, enableAutoPipelining: false };
export const client = (others = {}) => new Redis({ ...options, ...others });

// The public methods of the class Redis that send commands, as `get` or `json.get`. Vector and search have one entry
// each, because their methods need an index.
const NAMESPACES = ["json", "functions"];
const WITHOUT_COMMAND = [
  "addTelemetry", "autoPipeline", "autoPipelineExecutor", "client", "constructor", "createScript",
  "enableAutoPipelining", "enableTelemetry", "multi", "opts", "pipeline", "readYourWritesSyncToken", "use",
];
export function methodsOf(redis) {
  const names = new Set();
  for (let object = redis; object !== Object.prototype; object = Object.getPrototypeOf(object)) {
    for (const name of Object.getOwnPropertyNames(object)) names.add(name);
  }
  for (const name of [...WITHOUT_COMMAND, ...NAMESPACES]) names.delete(name);
  return [...names, ...NAMESPACES.flatMap((space) => Object.keys(redis[space]).map((name) => `${space}.${name}`))].sort();
}

// A method by its name: `get`, `json.get`, `search.alias.list`.
export function method(redis, name) {
  return name.split(".").reduce((object, part) => object[part], redis);
}

// The lines of expected-failures.txt for a package: method, arguments and reason.
export function expectedFailures(packageName) {
  const lines = readFileSync(new URL("expected-failures.txt", import.meta.url), "utf8").split("\n");
  return lines.filter((line) => line.startsWith(`${packageName} `)).map((line) => {
    const [, name, args, reason] = /^\S+ (\S+) (\[.*\]) # (.+)$/.exec(line) ?? [];
    if (!name) throw new Error(`expected-failures.txt: not "package method [arguments] # reason": ${line}`);
    return { name, args: JSON.parse(args), reason };
  });
}
