// The shop's data: one JSON file, which each write replaces. Pages and actions are bundled apart, so they share it by `globalThis`.
import { randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import "server-only";
import { seedProducts } from "./seed";

const FILE = process.env.SHOP_DATA;

function load() {
	if (FILE && existsSync(FILE)) return JSON.parse(readFileSync(FILE, "utf8"));
	return { products: seedProducts(), carts: {}, users: {}, sessions: {}, orders: [] };
}

const store = (globalThis.shopStore ??= load());

function save() {
	if (!FILE) return;
	writeFileSync(`${FILE}.new`, JSON.stringify(store));
	renameSync(`${FILE}.new`, FILE);
}

export const listProducts = () => store.products;
export const findProduct = (handle) => store.products.find((product) => product.handle === handle);
export const listCollection = (handle) =>
	handle === "all" ? store.products : store.products.filter((product) => product.collection === handle);
export const search = (query) => store.products.filter(({ title }) => title.toLowerCase().includes(query.toLowerCase()));

export function setPrice(handle, price) {
	findProduct(handle).price = price;
	save();
}

/** The lines of a cart with their products. */
export function cartLines(cartId) {
	const lines = Object.entries(store.carts[cartId] ?? {});
	return lines.map(([handle, quantity]) => ({ product: findProduct(handle), quantity }));
}

export const cartCount = (cartId) => cartLines(cartId).reduce((sum, { quantity }) => sum + quantity, 0);

/** Adds pieces to a cart. Returns the id of the cart, which is new if there was none. */
export function addToCart(cartId, handle, quantity) {
	const id = cartId && store.carts[cartId] ? cartId : randomBytes(16).toString("hex");
	const cart = (store.carts[id] ??= {});
	cart[handle] = (cart[handle] ?? 0) + quantity;
	save();
	return id;
}

export function setQuantity(cartId, handle, quantity) {
	const cart = store.carts[cartId];
	if (!cart) return;
	if (quantity > 0) cart[handle] = quantity;
	else delete cart[handle];
	save();
}

const hash = (password, salt) => scryptSync(password, salt, 32, { N: 1024 }).toString("hex");

/** Creates an account; null if the address has one. */
export function register(name, email, password) {
	if (store.users[email]) return null;
	const salt = randomBytes(16).toString("hex");
	store.users[email] = { name, email, salt, hash: hash(password, salt) };
	save();
	return store.users[email];
}

export function authenticate(email, password) {
	const user = store.users[email];
	if (!user) return null;
	return timingSafeEqual(Buffer.from(user.hash), Buffer.from(hash(password, user.salt))) ? user : null;
}

export function startSession(email) {
	const token = randomBytes(24).toString("hex");
	store.sessions[token] = email;
	save();
	return token;
}

export function endSession(token) {
	delete store.sessions[token];
	save();
}

export const sessionUser = (token) => store.users[store.sessions[token]] ?? null;

export function placeOrder(cartId, email, address) {
	const lines = cartLines(cartId);
	if (lines.length === 0) return null;
	const order = {
		id: randomBytes(8).toString("hex"), number: 1000 + store.orders.length, email, address,
		lines: lines.map(({ product, quantity }) => ({ title: product.title, price: product.price, quantity })),
	};
	store.orders.push(order);
	delete store.carts[cartId];
	save();
	return order;
}

export const findOrder = (id) => store.orders.find((order) => order.id === id);
export const listOrders = (email) => store.orders.filter((order) => order.email === email);
