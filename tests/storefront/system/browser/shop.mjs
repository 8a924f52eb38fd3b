// Actions of visitors in the demo shop.

import { assert, visit } from "./support.mjs";

export const MUG = "enamel-mug-sage";
export const PASSWORD = "a quiet walk by the harbour";

/** Adds an item to the cart on its page, and waits until the header shows `quantity` pieces. */
export async function addToCart(page, item, quantity) {
	await visit(page, `/products/${item}`);
	await page.getByRole("button", { name: "Add to cart" }).click();
	await counted(page, quantity);
	await page.getByRole("dialog", { name: "Added to cart" }).getByRole("button", { name: "Close" }).click();
}

/** Waits until the header shows `quantity` pieces in the cart. */
export async function counted(page, quantity) {
	const count = quantity > 0 ? String(quantity) : "";
	await page.waitForFunction((count) => document.querySelector("[data-cart-count]")?.textContent.trim() === count, count);
}

export async function signUp(page, email, name = "Ada") {
	await visit(page, "/signup");
	await page.locator("input[name=name]").fill(name);
	await page.locator("input[name=email]").fill(email);
	await page.locator("input[name=password]").fill(PASSWORD);
	await page.locator("main form button[type=submit]").first().click();
	await page.waitForURL((url) => url.pathname !== "/signup");
}

export async function signIn(page, email, password = PASSWORD) {
	await visit(page, "/login");
	await page.locator("input[name=email]").fill(email);
	await page.locator("input[name=password]").fill(password);
	await page.locator("main form button[type=submit]").first().click();
	await page.waitForURL((url) => url.pathname !== "/login");
}

/** Fills in the given fields of the checkout form. Other fields keep their values. */
export async function fillAddress(page, fields) {
	const address = fields.address ? { postcode: "W1", city: "London", country: "United Kingdom" } : {};
	for (const [name, value] of Object.entries({ ...address, ...fields })) await page.locator(`main form [name=${name}]`).fill(value);
}

/** The text of the page's main heading. */
export const heading = (page) => page.getByRole("heading", { level: 1 }).innerText();

/** The stock of an item, from the row cache's API. */
export async function stock(service, item) {
	await service("PUT", `/rows/${item}/schedule`, { every: 1 });
	const answer = await fetch(`${process.env.SHOP}/_edge/v1/rows/${item}`);
	assert.equal(answer.status, 200, item);
	return (await answer.json()).stock;
}
