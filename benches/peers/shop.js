// The storefront of the book's chapter as a Worker, with Hono. The three peers share its routes, responses and origin.
// Each peer provides a `store`, its access to Redis.

import { env } from "cloudflare:workers";
import { Hono } from "hono";

/** `storeOf()` returns the store of a request, with `view`, `keep`, `setItem`, `session` and `row`. */
export function shop(storeOf) {
	const app = new Hono();

	app.get("/products/:item", async (c) => {
		const store = storeOf();
		const key = `cache:${c.req.path}`;
		const { canCache, page } = await store.view(token(c), c.req.param("item"), key);
		if (page) return c.html(page);
		const answer = await fetch(env.ORIGIN_URL + c.req.path);
		const rendered = await answer.text();
		if (canCache && answer.ok) {
			const kept = store.keep(key, rendered);
			// Only the book's own sequence waits for the write.
			if (store.waits) await kept;
			else c.executionCtx.waitUntil(kept);
		}
		return c.html(rendered, answer.status);
	});

	app.get("/_edge/v1/session", async (c) => {
		const { user, cart } = await storeOf().session(token(c));
		const { lines, quantity } = cartOf(cart);
		return personal(c, { user: user || null, guest: user === "", cart: { lines, quantity } });
	});

	app.put("/_edge/v1/cart/items/:item", async (c) => {
		const { quantity } = await c.req.json();
		if (!Number.isInteger(quantity)) return c.json({ title: "quantity must be a whole number" }, 422);
		const cart = await storeOf().setItem(token(c), c.req.param("item"), quantity);
		return cart === null ? c.json({ title: "no session" }, 401) : personal(c, cartOf(cart));
	});

	app.get("/_edge/v1/rows/:row", async (c) => {
		const row = await storeOf().row(c.req.param("row"));
		if (row === null) return c.json({ title: "no such row" }, 404);
		// The client may return the row as text or as an object.
		return typeof row === "string" ? c.body(row, 200, { "Content-Type": "application/json" }) : c.json(row);
	});

	return app;
}

/** The token of the session cookie. Its signature is not checked, because the book's cookie has none. */
function token(c) {
	const cookie = c.req.header("Cookie") ?? "";
	return cookie.match(/(?:^|; )__Host-session=([\w-]+)/)?.[1];
}

/** `cart` is the hash: item → quantity. */
function cartOf(cart) {
	const items = Object.entries(cart ?? {}).map(([id, quantity]) => ({ id, quantity: Number(quantity) }));
	return { items, lines: items.length, quantity: items.reduce((sum, item) => sum + item.quantity, 0) };
}

const personal = (c, document) => c.json(document, 200, { "Cache-Control": "private, no-store" });

/** Pages of items with a rank below this number may be cached. */
export const RANK_LIMIT = Number(env.PAGE_RANK_LIMIT);
/** The lifetime of a cached page, in seconds. */
export const PAGE_TTL = 300;
