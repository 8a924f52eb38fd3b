// EverShop in a browser: browse, search, cart, registration, order, logout, login, administration.

import { assert, inBrowser, visit } from "../browser.mjs";

// The visitors of `cargo xtask test --storefronts` buy another product.
const PRODUCT = "/workshop/linen-mug";
const RUN = Date.now();
const CUSTOMER = { name: `Flora Flow ${RUN}`, email: `flow-${RUN}@shop.test`, password: "a-long-passphrase-1" };
const ADMIN = { email: "admin@shop.test", password: "admin-password-1" };
// EverShop lists no provinces for Singapore, so the address needs none.
const ADDRESS = { full_name: "Flora Flow", telephone: "5550100", address_1: "1 High Street", city: "Singapore", postcode: "018956" };
const COUNTRY = "SG";

/**
 * Opens a product page as a new visitor until it comes from the store. Returns the page. The visitor has no session before the first press on
 * a button, or the first page that is not shared.
 */
async function openShared(open, path) {
	for (let attempt = 0; attempt < 20; attempt += 1) {
		const page = await open();
		if ((await visit(page, path)).includes("hit")) return page;
		await page.waitForTimeout(300);
		await page.context().close();
	}
	return assert.fail(`${path} never came from the store`);
}

/** The names of the visitor's cookies. */
async function cookieNames(page) {
	return (await page.context().cookies()).map(({ name }) => name);
}

async function signIn(page, path, { email, password }) {
	await visit(page, path);
	await page.fill("[name=email]", email);
	await page.fill("[name=password]", password);
	await page.click("button[type=submit]");
	await page.waitForURL((url) => url.pathname !== path);
}

/** Sends JSON from the page, as EverShop's own scripts do, and returns the answer's `data`. */
async function post(page, path, body) {
	const answer = await page.evaluate(
		async ([url, json]) => {
			const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: json });
			return { status: response.status, text: await response.text() };
		},
		[path, JSON.stringify(body)],
	);
	assert.equal(answer.status, 200, `${path}: ${answer.text}`);
	return JSON.parse(answer.text).data;
}

/** Enables cash on delivery, and shipping to `COUNTRY`, unless an earlier run did. The seed leaves both unset. */
async function enableOrders(page) {
	await post(page, "/api/settings", { codPaymentStatus: 1, codDislayName: "Cash on delivery" });
	const { shippingZones } = await post(page, "/api/admin/graphql", { query: "{ shippingZones { name } }" });
	if (shippingZones.some(({ name }) => name === COUNTRY)) return;
	const zone = await post(page, "/api/shippingZones", { name: COUNTRY, country: COUNTRY });
	const method = await post(page, "/api/shippingMethods", { name: `Parcel ${RUN}` });
	await post(page, `/api/shippingZones/${zone.uuid}/methods`, {
		method_id: String(method.shipping_method_id), cost: "4", is_enabled: 1, calculation_type: "flat_rate", condition_type: "none",
	});
}

await inBrowser(async (open, step) => {
	const page = await open();
	let order;

	await step("browse", page, async () => {
		await visit(page, "/");
		await page.click(".product-name a >> nth=0");
		await page.waitForSelector("#productForm");
		// The menu of a new shop names categories that do not exist.
		await visit(page, "/kitchen");
		await page.click(".product-name a >> nth=0");
		await page.waitForURL("**/kitchen/*");
		await page.waitForSelector("#productForm");
	});

	await step("search", page, async () => {
		await page.click("a.search-icon");
		await page.fill(".search-input input", "linen");
		await page.press(".search-input input", "Enter");
		await page.waitForURL("**/search?keyword=linen");
		assert.ok((await page.locator(".product-name").count()) >= 5, "the search finds the linen products");
	});

	const admin = await open();
	await step("administration enables orders", admin, async () => {
		await signIn(admin, "/admin/login", ADMIN);
		await enableOrders(admin);
	});

	const shopper = await openShared(open, PRODUCT);
	await step("add a shared page's product to the cart", shopper, async () => {
		assert.ok(!(await cookieNames(shopper)).includes("sid"), "neither the shared page nor its files set sid");
		await shopper.fill("[name=qty]", "2");
		await shopper.click(".add-to-cart button");
		await shopper.waitForSelector(".toast-mini-cart");
		assert.ok((await cookieNames(shopper)).includes("sid"), "the press on the button starts the session");
		assert.match(await shopper.innerText(".toast-mini-cart"), /Linen Mug\s+QTY: 2/);
	});

	await step("cart", shopper, async () => {
		await shopper.click(".mini-cart-icon");
		await shopper.waitForURL("**/cart");
		assert.match(await shopper.innerText("#shopping-cart-items"), /Linen Mug/);
		assert.equal(await shopper.inputValue(".qty-box input >> visible=true"), "2");
		// The product page is the shopper's own from now on.
		assert.ok(!(await visit(shopper, PRODUCT)).includes("hit"));
		assert.equal(await shopper.innerText(".mini-cart-icon"), "2");
	});

	await step("other visitors have an empty cart", shopper, async () => {
		const other = await openShared(open, PRODUCT);
		assert.equal(await other.innerText(".mini-cart-icon"), "");
		await visit(other, "/cart");
		assert.match(await other.innerText("main"), /Your cart is empty/);
		await other.context().close();
	});

	await step("registration keeps the cart", shopper, async () => {
		await visit(shopper, "/account/register");
		await shopper.fill("[name=full_name]", CUSTOMER.name);
		await shopper.fill("[name=email]", CUSTOMER.email);
		await shopper.fill("[name=password]", CUSTOMER.password);
		await shopper.click("#registerForm button[type=submit]");
		await shopper.waitForURL((url) => url.pathname === "/");
		await visit(shopper, "/account");
		assert.ok((await shopper.innerText(".account-details")).includes(CUSTOMER.name));
		assert.equal(await shopper.innerText(".mini-cart-icon"), "2");
	});

	await step("other visitors do not see the name", shopper, async () => {
		const other = await openShared(open, PRODUCT);
		assert.ok(!(await other.content()).includes(CUSTOMER.name));
		await other.context().close();
	});

	await step("order", shopper, async () => {
		await visit(shopper, "/checkout");
		for (const [name, value] of Object.entries(ADDRESS)) await shopper.fill(`[name='address[${name}]']`, value);
		await shopper.selectOption("[name='address[country]']", COUNTRY);
		await shopper.click(".shipping-methods .radio-field label");
		await shopper.click("#checkoutShippingAddressForm button[type=submit]");
		await shopper.click(".payment-method-list a >> nth=0");
		await shopper.click("#checkoutPaymentForm .form-submit-button button");
		await shopper.waitForURL("**/checkout/success/**");
		order = /Order #(\d+)/.exec(await shopper.innerText("main"))?.[1];
		assert.ok(order, "the page shows the order's number");
	});

	await step("the cart is empty after the order", shopper, async () => {
		await visit(shopper, PRODUCT);
		assert.equal(await shopper.innerText(".mini-cart-icon"), "");
	});

	await step("logout", shopper, async () => {
		await visit(shopper, "/account");
		await shopper.click("text=Logout");
		await shopper.waitForURL((url) => url.pathname === "/");
		await visit(shopper, PRODUCT);
		assert.ok(!(await shopper.content()).includes(CUSTOMER.name));
	});

	await step("login", shopper, async () => {
		await signIn(shopper, "/account/login", CUSTOMER);
		await visit(shopper, "/account");
		assert.ok((await shopper.innerText(".order-history")).includes(order));
	});

	await step("administration", admin, async () => {
		await visit(admin, "/admin");
		assert.match(await admin.innerText("body"), /Dashboard/);
		await visit(admin, "/admin/orders");
		await admin.click(`text=#${order}`);
		await admin.waitForURL("**/admin/order/edit/**");
		assert.ok((await admin.innerText("body")).includes(CUSTOMER.email));
		await visit(admin, "/admin/products");
		// The newest products come first.
		await admin.click("text=Wool Stool");
		await admin.waitForURL("**/admin/products/edit/**");
		assert.equal(await admin.inputValue("[name=name]"), "Wool Stool");
	});
});
