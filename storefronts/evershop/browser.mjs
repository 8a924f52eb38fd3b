// EverShop in a browser: browse, search, cart, registration, order, logout, login, administration.

import { assert, inBrowser, visit } from "../browser.mjs";

// The visitors of `cargo xtask test --storefronts` buy another product.
const PRODUCT = "/workshop/linen-mug";
const RUN = Date.now();
const CUSTOMER = { name: `Flora Flow ${RUN}`, email: `flow-${RUN}@shop.test`, password: "a-long-passphrase-1" };
const ADMIN = { email: "admin@shop.test", password: "admin-password-1" };
const ADDRESS = { full_name: "Flora Flow", telephone: "5550100", address_1: "1 High Street", city: "Springfield", postcode: "90210" };
const COUNTRY = { code: "US", name: "United States", province: "California" };

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

/** Waits until the icon of the cart shows a number of pieces. */
async function cartHas(page, pieces) {
	await page.waitForSelector(`.mini-cart-icon[aria-label='Shopping cart with ${pieces} items']`);
}

/** Adds pieces of the open page's product to the cart, and waits for the cart that slides in. */
async function addToCart(page, pieces) {
	assert.ok(!(await cookieNames(page)).includes("sid"), "neither the shared page nor its files set sid");
	await page.fill("[name=qty]", String(pieces));
	await page.click("#productForm button:has-text('Add to cart')");
	await page.waitForSelector(".minicart__items__container");
	assert.ok((await cookieNames(page)).includes("sid"), "the press on the button starts the session");
}

/** Returns the text of the page with the cart. */
async function readCart(page) {
	await visit(page, "/cart");
	return page.innerText("main");
}

/**
 * Opens a stored product page as a visitor who comes back after a day: the session's cookie has expired, and the browser still has the shop's
 * scripts and the visitor's own copy of the page.
 */
async function openAsReturning(open, path) {
	const page = await open();
	await visit(page, "/account/login");
	await visit(page, path);
	assert.ok((await cookieNames(page)).includes("sid"), "the first visit starts a session");
	for (let attempt = 0; attempt < 20; attempt += 1) {
		await page.context().clearCookies();
		await page.goto("about:blank");
		if ((await visit(page, path)).includes("hit")) {
			const sizes = await page.evaluate(() => {
				// Chromium loads the shop's icon, which is below `/assets/`, too, some time after the first page.
				const scripts = performance.getEntriesByType("resource").filter(({ initiatorType }) => initiatorType === "script");
				return scripts.filter(({ name }) => new URL(name).pathname.startsWith("/assets/")).map(({ transferSize }) => transferSize);
			});
			assert.ok(sizes.length > 0 && sizes.every((size) => size === 0), `the browser has the shop's scripts: ${sizes}`);
			return page;
		}
		await page.waitForTimeout(300);
	}
	return assert.fail(`${path} never came from the store`);
}

async function signIn(page, path, { email, password }) {
	await visit(page, path);
	await page.fill("[name=email]", email);
	await page.fill("[name=password]", password);
	await page.click(".form-submit-button button");
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
	await post(page, "/api/settings", { codPaymentStatus: 1, codDisplayName: "Cash on delivery" });
	const { shippingZones } = await post(page, "/api/admin/graphql", { query: "{ shippingZones { name } }" });
	if (shippingZones.some(({ name }) => name === COUNTRY.name)) return;
	const zone = await post(page, "/api/shippingZones", { name: COUNTRY.name, countries: [COUNTRY.code] });
	const method = await post(page, "/api/shippingProviders/core/methods", { name: `Parcel ${RUN}` });
	await post(page, "/api/shippingProviders/core/rates", { method_id: method.uuid, zone_id: zone.uuid, is_enabled: true, cost: "4" });
}

async function choose(page, label, option) {
	await page.getByLabel(label).click();
	await page.getByRole("option", { name: option, exact: true }).click();
}

await inBrowser(async (open, step) => {
	const page = await open();
	let order;

	await step("browse", page, async () => {
		await visit(page, "/");
		await visit(page, "/kitchen");
		await page.click("a.product__list__link >> nth=0");
		await page.waitForURL("**/kitchen/*");
		await page.waitForSelector("#productForm");
	});

	await step("search", page, async () => {
		await page.click("a.search__icon");
		await page.fill(".search__input input", "linen");
		await page.press(".search__input input", "Enter");
		await page.waitForURL("**/search?keyword=linen");
		assert.ok((await page.locator(".product__list__name").count()) >= 5, "the search finds the linen products");
	});

	const admin = await open();
	await step("administration enables orders", admin, async () => {
		await signIn(admin, "/admin/login", ADMIN);
		await enableOrders(admin);
	});

	const shopper = await openShared(open, PRODUCT);
	await step("add a shared page's product to the cart", shopper, async () => {
		await addToCart(shopper, 2);
		assert.match(await shopper.innerText(".minicart__items__container"), /2\s+Linen Mug/);
	});

	await step("cart", shopper, async () => {
		await shopper.click(".minicart__viewcart__button");
		await shopper.waitForURL("**/cart");
		assert.match(await shopper.innerText("main"), /Linen Mug/);
		// The product page is the shopper's own from now on.
		assert.ok(!(await visit(shopper, PRODUCT)).includes("hit"));
		await cartHas(shopper, 2);
	});

	await step("other visitors have an empty cart", shopper, async () => {
		const other = await openShared(open, PRODUCT);
		await cartHas(other, 0);
		assert.match(await readCart(other), /Your cart is empty/);
		await other.context().close();
	});

	await step("returning visitors have carts of their own", shopper, async () => {
		const ann = await openAsReturning(open, PRODUCT);
		await addToCart(ann, 3);
		const ben = await openAsReturning(open, PRODUCT);
		await addToCart(ben, 4);
		for (const [visitor, pieces] of [[ann, 3], [ben, 4]]) {
			assert.match(await readCart(visitor), /Linen Mug/);
			await cartHas(visitor, pieces);
			await visitor.context().close();
		}
	});

	await step("registration keeps the cart", shopper, async () => {
		await visit(shopper, "/account/register");
		await shopper.fill("[name=full_name]", CUSTOMER.name);
		await shopper.fill("[name=email]", CUSTOMER.email);
		await shopper.fill("[name=password]", CUSTOMER.password);
		await shopper.click("#registerForm .form-submit-button button");
		await shopper.waitForURL((url) => url.pathname === "/");
		await visit(shopper, "/account");
		assert.ok((await shopper.innerText(".account__details")).includes(CUSTOMER.name));
		await cartHas(shopper, 2);
	});

	await step("other visitors do not see the name", shopper, async () => {
		const other = await openShared(open, PRODUCT);
		assert.ok(!(await other.content()).includes(CUSTOMER.name));
		await other.context().close();
	});

	await step("order", shopper, async () => {
		await visit(shopper, "/checkout");
		for (const [name, value] of Object.entries(ADDRESS)) await shopper.fill(`[name='shippingAddress.${name}']`, value);
		await choose(shopper, "Country", COUNTRY.name);
		await choose(shopper, "Province", COUNTRY.province);
		await shopper.click(".shipping-methods-list [data-slot=item]");
		await shopper.waitForSelector(".shipping-methods-list [role=radio][aria-checked=true]");
		await shopper.click("label:has(#payment-method-cod)");
		await shopper.click(".checkout-button-section button");
		await shopper.waitForURL("**/checkout/success/**");
		order = /Order #(\d+)/.exec(await shopper.innerText("main"))?.[1];
		assert.ok(order, "the page shows the order's number");
	});

	await step("the cart is empty after the order", shopper, async () => {
		await visit(shopper, PRODUCT);
		await cartHas(shopper, 0);
	});

	await step("logout", shopper, async () => {
		await visit(shopper, "/account");
		await shopper.click(".account-header button");
		await shopper.waitForURL((url) => url.pathname === "/");
		await visit(shopper, PRODUCT);
		assert.ok(!(await shopper.content()).includes(CUSTOMER.name));
	});

	await step("login", shopper, async () => {
		await signIn(shopper, "/account/login", CUSTOMER);
		await visit(shopper, "/account/orders");
		await shopper.waitForSelector(`text=#${order}`);
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
