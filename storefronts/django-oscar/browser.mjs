// django-oscar in a browser: browse, search, basket, registration, order, logout, login, administration.

import { assert, inBrowser, visit, visitUntilHit } from "../browser.mjs";

const PRODUCT = "/catalogue/linen-lamp_8/";
const ACCOUNT = { email: `flow-${Date.now()}@shop.test`, password: "a-long-passphrase-1" };

async function signIn(page, { email, password }) {
	await visit(page, "/accounts/login/");
	await page.fill("#id_login-username", email);
	await page.fill("#id_login-password", password);
	await page.click("[name=login_submit]");
	await page.waitForURL((url) => url.pathname !== "/accounts/login/");
}

await inBrowser(async (open, step) => {
	const page = await open();
	let order;

	await step("browse", page, async () => {
		await visit(page, "/");
		await page.click("text=Kitchen >> nth=-1");
		await page.click(".product_pod h3 a >> nth=0");
		assert.match(page.url(), /\/catalogue\/.+_\d+\//);
		assert.equal(await page.locator("#logout_link").count(), 0);
	});

	await step("search", page, async () => {
		await page.fill("#id_q", "linen");
		await page.press("#id_q", "Enter");
		assert.ok((await page.locator(".product_pod").count()) >= 5, "the search finds the linen products");
	});

	// The form of a shared page: its token is the same for all visitors.
	await step("add a shared page's product to the basket", page, async () => {
		await visitUntilHit(page, PRODUCT);
		await page.click("#add_to_basket_form button[type=submit]");
		await page.waitForSelector("#messages .alert-success");
		assert.match(await page.innerText("#messages"), /Linen Lamp has been added/i);
		assert.match(await page.innerText(".basket-mini"), /£12\.00/);
	});

	await step("a message is shown once", page, async () => {
		await visit(page, PRODUCT);
		assert.equal((await page.innerText("#messages")).trim(), "");
		assert.match(await page.innerText(".basket-mini"), /£12\.00/);
	});

	await step("other visitors have an empty basket", page, async () => {
		const other = await open();
		await visitUntilHit(other, PRODUCT);
		assert.match(await other.innerText(".basket-mini"), /£0\.00/);
		assert.equal((await other.innerText("#messages")).trim(), "");
		await other.context().close();
	});

	await step("registration keeps the basket", page, async () => {
		await visit(page, "/accounts/login/");
		await page.fill("#id_registration-email", ACCOUNT.email);
		await page.fill("#id_registration-password1", ACCOUNT.password);
		await page.fill("#id_registration-password2", ACCOUNT.password);
		await page.click("[name=registration_submit]");
		await page.waitForSelector("#logout_link");
		await visit(page, PRODUCT);
		assert.match(await page.innerText(".basket-mini"), /£12\.00/);
	});

	await step("order", page, async () => {
		await visit(page, "/basket/");
		await page.click("a[href$='/checkout/']");
		const address = { first_name: "Flora", last_name: "Flow", line1: "1 High Street", line4: "London", postcode: "N1 7GU" };
		for (const [name, value] of Object.entries(address)) await page.fill(`#id_${name}`, value);
		await page.click("#new_shipping_address button[type=submit]");
		await page.waitForURL("**/checkout/{payment-details,shipping-method}/**");
		await page.click("#view_preview");
		await page.click("#place-order");
		await page.waitForURL("**/checkout/thank-you/**");
		order = /(\d{6,})/.exec(await page.innerText("#default, main, .page"))?.[1];
		assert.ok(order, "the page shows the order's number");
	});

	await step("the basket is empty after the order", page, async () => {
		await visit(page, PRODUCT);
		assert.match(await page.innerText(".basket-mini"), /£0\.00/);
	});

	await step("logout", page, async () => {
		await page.click("#logout_link");
		await visitUntilHit(page, PRODUCT);
		assert.equal(await page.locator("#logout_link").count(), 0);
	});

	await step("login", page, async () => {
		await signIn(page, ACCOUNT);
		await visit(page, "/accounts/orders/");
		assert.ok((await page.innerText(".page")).includes(order));
		await visit(page, PRODUCT);
		assert.equal(await page.locator("#logout_link").count(), 1);
	});

	const admin = await open();
	await step("administration", admin, async () => {
		await signIn(admin, { email: "admin@example.com", password: "admin-password-1" });
		await visit(admin, `/dashboard/orders/${order}/`);
		assert.ok((await admin.content()).includes("Flora"));
		await visit(admin, "/dashboard/catalogue/");
		await admin.click("td:nth-child(2) a >> nth=0");
		await admin.click("[name=action][value=save] >> nth=0");
		await admin.waitForSelector(".alert-success");
	});
});
