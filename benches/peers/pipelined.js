// The storefront of the book's chapter, with the client's auto-pipelining: independent commands are sent at once. The
// client sends the reads of a turn of the event loop in one request, and its writes in another.

import { env } from "cloudflare:workers";
import { Redis } from "@upstash/redis/cloudflare";
import { PAGE_TTL, RANK_LIMIT, shop } from "./shop.js";

// One client per request: two requests that share a pipeline would also share its I/O, which the runtime forbids.
export default shop(() => {
	const redis = Redis.fromEnv(env, { enableAutoPipelining: true });
	const checkToken = (token) => (token ? redis.hget("login:", token) : null);

	return {
		async view(token, item, key) {
			const user = await checkToken(token);
			const now = Date.now() / 1000;
			const update = user === null ? [] : [
				redis.hset("login:", { [token]: user }),
				redis.zadd("recent:", { score: now, member: token }),
				redis.zadd(`viewed:${token}`, { score: now, member: item }),
				redis.zremrangebyrank(`viewed:${token}`, 0, -26),
			];
			const [rank, page] = await Promise.all([
				redis.zrank("viewed:", item),
				redis.get(key),
				redis.zincrby("viewed:", -1, item),
				...update,
			]);
			const canCache = rank !== null && rank < RANK_LIMIT;
			return { canCache, page: canCache ? page : null };
		},

		keep: (key, page) => redis.set(key, page, { ex: PAGE_TTL }),

		async setItem(token, item, quantity) {
			if ((await checkToken(token)) === null) return null;
			// One explicit pipeline, because auto-pipelining may execute the read before the write.
			const pipeline = redis.pipeline();
			if (quantity > 0) pipeline.hset(`cart:${token}`, { [item]: quantity });
			else pipeline.hdel(`cart:${token}`, item);
			const [, cart] = await pipeline.hgetall(`cart:${token}`).exec();
			return cart ?? {};
		},

		async session(token) {
			if (!token) return { user: null, cart: null };
			// One explicit pipeline, because auto-pipelining leaves out HGETALL.
			const [user, cart] = await redis.pipeline().hget("login:", token).hgetall(`cart:${token}`).exec();
			return { user, cart: user === null ? null : cart };
		},

		row: (row) => redis.get(`inv:${row}`),
	};
});
