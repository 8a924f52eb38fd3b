// What people do in the demo shop, said once.

import { assert, visit } from "./support.mjs";

export const MUG = "enamel-mug-sage";
export const PASSWORD = "a quiet walk by the harbour";

/** Puts an item into the cart from its page, and waits until the header counts `quantity` pieces. */
export async function addToCart(page, item, quantity) {
	await visit(page, `/products/${item}`);
	await page.getByRole("button", { name: "Add to cart" }).click();
	await counted(page, quantity);
}

/** Waits until the header counts so many pieces in the cart. */
export async function counted(page, quantity) {
	const count = quantity > 0 ? String(quantity) : "";
	await page.waitForFunction((count) => document.querySelector("[data-cart-count]")?.textContent.trim() === count, count);
}

export async function signUp(page, mail, name = "Ada") {
	await visit(page, "/signup");
	await page.locator("input[name=name]").fill(name);
	await page.locator("input[name=mail]").fill(mail);
	await page.locator("input[name=password]").fill(PASSWORD);
	await page.locator("main form button[type=submit]").first().click();
	await page.waitForURL((url) => url.pathname !== "/signup");
}

export async function signIn(page, mail) {
	await visit(page, "/login");
	await page.locator("input[name=mail]").fill(mail);
	await page.locator("input[name=password]").fill(PASSWORD);
	await page.locator("main form button[type=submit]").first().click();
	await page.waitForURL((url) => url.pathname !== "/login");
}

/** Fills in where an order goes; what is not given stays as it is. */
export async function fillAddress(page, fields) {
	for (const [name, value] of Object.entries(fields)) await page.locator(`main form [name=${name}]`).fill(value);
}

/** The text of the page's one main heading. */
export const heading = (page) => page.getByRole("heading", { level: 1 }).innerText();

/** How many pieces of an item the database has, by the page that tells a visitor. */
export async function stock(service, item) {
	await service("PUT", `/rows/${item}/schedule`, { every: 1 });
	const answer = await fetch(`${process.env.SHOP}/_edge/v1/rows/${item}`);
	assert.equal(answer.status, 200, item);
	return (await answer.json()).stock;
}
