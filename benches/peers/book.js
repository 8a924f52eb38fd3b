// The storefront of the book's chapter, call by call as in its code: check_token, update_token, can_cache, the cached
// page.

import { env } from "cloudflare:workers";
import { Redis } from "@upstash/redis/cloudflare";
import { PAGE_TTL, RANK_LIMIT, shop } from "./shop.js";

const redis = Redis.fromEnv(env, { enableAutoPipelining: false });

const checkToken = (token) => (token ? redis.hget("login:", token) : null);

async function updateToken(token, user, item) {
	const now = Date.now() / 1000;
	await redis.hset("login:", { [token]: user });
	await redis.zadd("recent:", { score: now, member: token });
	await redis.zadd(`viewed:${token}`, { score: now, member: item });
	await redis.zremrangebyrank(`viewed:${token}`, 0, -26);
}

const store = {
	waits: true,

	async view(token, item, key) {
		const user = await checkToken(token);
		if (user !== null) await updateToken(token, user, item);
		await redis.zincrby("viewed:", -1, item);
		const rank = await redis.zrank("viewed:", item);
		const canCache = rank !== null && rank < RANK_LIMIT;
		return { canCache, page: canCache ? await redis.get(key) : null };
	},

	keep: (key, page) => redis.set(key, page, { ex: PAGE_TTL }),

	async setItem(token, item, quantity) {
		if ((await checkToken(token)) === null) return null;
		if (quantity > 0) await redis.hset(`cart:${token}`, { [item]: quantity });
		else await redis.hdel(`cart:${token}`, item);
		return (await redis.hgetall(`cart:${token}`)) ?? {};
	},

	async session(token) {
		const user = await checkToken(token);
		return { user, cart: user === null ? null : await redis.hgetall(`cart:${token}`) };
	},

	row: (row) => redis.get(`inv:${row}`),
};

export default shop(() => store);
