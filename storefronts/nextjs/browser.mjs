// The shop with Next.js in a browser: browse, search, cart, registration, order, logout, login, drafts, administration.

import { assert, inBrowser, visit, visitUntilHit } from "../browser.mjs";

// The visitors of `cargo xtask test --storefronts` buy another product.
const PRODUCT = "/product/linen-mug";
const RUN = Date.now();
const CUSTOMER = { name: `Flora Flow ${RUN}`, email: `flow-${RUN}@shop.test`, password: "a-long-passphrase-1" };
const ADMIN_PASSWORD = "admin-password-1";

/** Waits until an element shows a text: the page's scripts fetch the visitor's parts. */
async function waitForText(page, selector, text) {
	await page.locator(selector).filter({ hasText: text }).waitFor();
}

async function submit(page, fields) {
	for (const [name, value] of Object.entries(fields)) await page.fill(`#credentials [name=${name}]`, value);
	await page.click("#credentials button");
}

const asksForData = (request) => request.headers().rsc === "1";

/** Notes each document that is data (`text/x-component`), and the reverse. */
function watchTypes(page) {
	const wrong = [];
	page.on("response", (response) => {
		const request = response.request();
		// Playwright shows the headers of a redirected request without those of the script.
		if (request.method() !== "GET" || response.status() !== 200 || request.redirectedFrom()) return;
		const { "content-type": type = "" } = response.headers();
		if (request.isNavigationRequest() !== type.startsWith("text/html") || asksForData(request) !== type.startsWith("text/x-component")) {
			wrong.push(`${request.url()}: ${type}`);
		}
	});
	return wrong;
}

/** Waits until the page's scripts have fetched the visitor's parts, and returns the texts of the links to the cart and the account. */
async function ownParts(page) {
	await page.waitForSelector("#mini-cart[data-loaded=true]");
	await page.waitForSelector("#account-link[data-loaded=true]");
	return [await page.innerText("#mini-cart"), await page.innerText("#account-link")];
}

await inBrowser(async (open, step) => {
	const page = await open();
	const wrong = watchTypes(page);
	let order;

	await step("browse", page, async () => {
		await visit(page, "/");
		await page.click("nav >> text=Kitchen");
		await page.waitForURL("**/collections/kitchen");
		await waitForText(page, "h1", "kitchen");
		await page.click(".product a >> nth=1");
		await page.waitForURL("**/product/*");
		await page.waitForSelector("#add-to-cart");
		await page.goBack();
		await waitForText(page, "h1", "kitchen");
		await page.reload();
		await waitForText(page, "h1", "kitchen");
	});

	await step("search", page, async () => {
		await page.fill("#search-form input", "linen");
		await page.press("#search-form input", "Enter");
		await page.waitForURL("**/search?q=linen");
		await waitForText(page, "h1", "10 products");
	});

	await step("other addresses", page, async () => {
		await visit(page, "/products/linen-mug");
		assert.equal(new URL(page.url()).pathname, PRODUCT, "an old link leads to the product");
		const missing = await page.goto("/product/no-such-product");
		assert.equal(missing.status(), 404);
		await waitForText(page, "h1", "This page does not exist");
	});

	await step("prefetched data comes from the store", page, async () => {
		const next = await open();
		const wrongForNext = watchTypes(next);
		const isHit = (answer) => asksForData(answer.request()) && answer.headers()["cache-status"].includes("; hit");
		const hit = next.waitForResponse(isHit);
		await visitUntilHit(next, PRODUCT);
		await visit(next, PRODUCT);
		await hit;
		wrong.push(...wrongForNext);
		await next.context().close();
	});

	const shopper = await open();
	const wrongForShopper = watchTypes(shopper);
	await step("add a shared page's product to the cart", shopper, async () => {
		await visitUntilHit(shopper, PRODUCT);
		await shopper.fill("#add-to-cart [name=quantity]", "2");
		await shopper.click("#add-to-cart button");
		await waitForText(shopper, "#add-to-cart [role=status]", "Added to cart");
		await waitForText(shopper, "#mini-cart", "Cart (2)");
	});

	await step("cart", shopper, async () => {
		await shopper.click("#mini-cart");
		await shopper.waitForURL("**/cart");
		await waitForText(shopper, ".line", "Linen Mug");
		await shopper.fill(".line [name=quantity]", "3");
		await shopper.click(".line button");
		await waitForText(shopper, "#total", "£42.00");
		// The page stays shared, and its script shows the cart.
		await visitUntilHit(shopper, PRODUCT);
		await waitForText(shopper, "#mini-cart", "Cart (3)");
	});

	await step("other visitors have an empty cart", shopper, async () => {
		const other = await open();
		await visitUntilHit(other, PRODUCT);
		assert.deepEqual(await ownParts(other), ["Cart", "Sign in"]);
		await visit(other, "/cart");
		await waitForText(other, "h1", "Your cart is empty");
		await other.context().close();
	});

	await step("registration keeps the cart", shopper, async () => {
		await visit(shopper, "/account");
		assert.equal(new URL(shopper.url()).pathname, "/login", "guests sign in first");
		await shopper.click("main >> text=Create account");
		await shopper.waitForURL("**/register");
		await submit(shopper, CUSTOMER);
		await shopper.waitForURL("**/account");
		await waitForText(shopper, "h1", `Hello, ${CUSTOMER.name}`);
		await waitForText(shopper, "#account-link", CUSTOMER.name);
		await waitForText(shopper, "#mini-cart", "Cart (3)");
	});

	await step("other visitors do not see the name", shopper, async () => {
		const other = await open();
		await visitUntilHit(other, PRODUCT);
		assert.deepEqual(await ownParts(other), ["Cart", "Sign in"]);
		assert.ok(!(await other.content()).includes(CUSTOMER.name));
		await other.context().close();
	});

	await step("order", shopper, async () => {
		await shopper.click("#mini-cart");
		await shopper.click("#checkout");
		await shopper.waitForURL("**/checkout");
		await shopper.fill("#order [name=address]", "1 High Street");
		await shopper.click("#order button");
		await shopper.waitForURL("**/order/*");
		order = /Order (\d+)/.exec(await shopper.innerText("h1"))?.[1];
		assert.ok(order, "the page shows the order's number");
		await shopper.reload();
		assert.deepEqual(await ownParts(shopper), ["Cart", CUSTOMER.name]);
	});

	await step("logout", shopper, async () => {
		await visit(shopper, "/account");
		await shopper.click("#logout button");
		await shopper.waitForURL((url) => url.pathname === "/");
		await waitForText(shopper, "#account-link", "Sign in");
		await visit(shopper, "/account");
		assert.equal(new URL(shopper.url()).pathname, "/login");
	});

	await step("login", shopper, async () => {
		await submit(shopper, { email: CUSTOMER.email, password: "wrong" });
		await waitForText(shopper, "#credentials [role=alert]", "Email or password is incorrect.");
		await submit(shopper, { email: CUSTOMER.email, password: CUSTOMER.password });
		await shopper.waitForURL("**/account");
		await waitForText(shopper, "#orders", `Order ${order}`);
	});

	const editor = await open();
	await step("an editor sees a draft, and nobody else", editor, async () => {
		await visit(editor, `/api/draft?secret=${ADMIN_PASSWORD}&handle=linen-mug`);
		await waitForText(editor, "#draft", "Draft");
		await visit(shopper, PRODUCT);
		assert.equal(await shopper.locator("#draft").count(), 0);
	});

	await step("administration", editor, async () => {
		await visit(editor, "/admin");
		await editor.fill("#admin-login [name=password]", ADMIN_PASSWORD);
		await editor.click("#admin-login button");
		const price = 4000 + (RUN % 1000);
		await editor.fill("#price-wool-stool [name=price]", String(price));
		await editor.click("#price-wool-stool button");
		await editor.waitForSelector(`#price-wool-stool [name=price][value="${price}"]`);
		// A reload gets the new price, and everybody after it.
		await visit(shopper, "/product/wool-stool");
		await shopper.reload();
		await waitForText(shopper, "#price", `£${(price / 100).toFixed(2)}`);
		const other = await open();
		await visitUntilHit(other, "/product/wool-stool");
		await waitForText(other, "#price", `£${(price / 100).toFixed(2)}`);
		await other.context().close();
		assert.deepEqual([...wrong, ...wrongForShopper], [], "documents and data are never mixed up");
	});
});
