// The storefront of the book's chapter, tuned by hand: one script per request. The client's optional work is off:
// base64, JSON detection, and the token for reading one's own writes.

import { env } from "cloudflare:workers";
import { Redis } from "@upstash/redis/cloudflare";
import { PAGE_TTL, RANK_LIMIT, shop } from "./shop.js";

const redis = Redis.fromEnv(env, {
	automaticDeserialization: false,
	enableAutoPipelining: false,
	enableTelemetry: false,
	readYourWrites: false,
	responseEncoding: false,
});

// KEYS login: recent: viewed:T viewed: page | ARGV T item now limit       -> {rank or nil, page or nil}
const VIEW = redis.createScript(`
local user = ARGV[1] ~= '' and redis.call('HGET', KEYS[1], ARGV[1])
if user then
  redis.call('HSET', KEYS[1], ARGV[1], user)
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[3], ARGV[2])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -26)
end
redis.call('ZINCRBY', KEYS[4], -1, ARGV[2])
local rank = redis.call('ZRANK', KEYS[4], ARGV[2])
return {rank, rank < tonumber(ARGV[4]) and redis.call('GET', KEYS[5])}`);

// KEYS login: cart:T | ARGV T item quantity                               -> the cart, or nil without a session
const SET_ITEM = redis.createScript(`
if not redis.call('HGET', KEYS[1], ARGV[1]) then return false end
if tonumber(ARGV[3]) > 0 then redis.call('HSET', KEYS[2], ARGV[2], ARGV[3]) else redis.call('HDEL', KEYS[2], ARGV[2]) end
return redis.call('HGETALL', KEYS[2])`);

// KEYS login: cart:T | ARGV T                                             -> {user or nil, the cart}
const SESSION = redis.createScript(`
return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGETALL', KEYS[2])}`);

const store = {
	async view(token = "", item, key) {
		const keys = ["login:", "recent:", `viewed:${token || "-"}`, "viewed:", key];
		const [rank, page] = await VIEW.exec(keys, [token, item, Date.now() / 1000, RANK_LIMIT]);
		return { canCache: rank < RANK_LIMIT, page };
	},

	keep: (key, page) => redis.set(key, page, { ex: PAGE_TTL }),

	async setItem(token = "", item, quantity) {
		const cart = await SET_ITEM.exec(["login:", `cart:${token || "-"}`], [token, item, quantity]);
		return cart && pairs(cart);
	},

	async session(token) {
		if (!token) return { user: null, cart: null };
		const [user, cart] = await SESSION.exec(["login:", `cart:${token}`], [token]);
		return { user, cart: user === null ? null : pairs(cart) };
	},

	row: (row) => redis.get(`inv:${row}`),
};

export default shop(() => store);

/** `[a, 1, b, 2]` → `{a: 1, b: 2}`. */
function pairs(flat) {
	const object = {};
	for (let index = 0; index < flat.length; index += 2) object[flat[index]] = flat[index + 1];
	return object;
}
