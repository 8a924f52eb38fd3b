// An account, with and without JavaScript: saved addresses, the header of personal pages, and a forgotten password.

import { createHash } from "node:crypto";

import { accessible, assert, DESKTOP, inBrowser, PHONE, sql, visit } from "./support.mjs";
import { fillAddress, heading, MUG, PASSWORD, signIn } from "./shop.mjs";

const NEW_PASSWORD = "a new walk on the hill";

/** Opens the checkout of one mug. */
async function openCheckout(page) {
	await page.goto(`/products/${MUG}`);
	await page.getByRole("button", { name: "Add to cart" }).click();
	await page.locator("[data-cart-count]", { hasText: "1" }).waitFor();
	await page.goto("/checkout");
}

/** Orders one mug, delivered to `street`. */
async function order(page, street) {
	await openCheckout(page);
	await fillAddress(page, { address: street });
	await page.getByRole("button", { name: /^Place order/ }).click();
	await page.waitForURL(/\/orders\//);
}

await inBrowser(async (open) => {
	for (const javaScriptEnabled of [true, false]) {
		const options = javaScriptEnabled ? { viewport: PHONE } : { viewport: DESKTOP, colorScheme: "dark" };
		const page = await (await open({ javaScriptEnabled, ...options })).newPage();
		const check = async (what) => javaScriptEnabled && accessible(page, what);
		const email = `ada-${javaScriptEnabled}@example.org`;
		await page.goto("/signup");
		for (const [name, value] of Object.entries({ name: "Ada", email, password: PASSWORD })) await page.locator(`input[name=${name}]`).fill(value);
		await page.locator("main form button[type=submit]").first().click();
		await page.waitForURL((url) => url.pathname !== "/signup");

		await order(page, "1 Home Road");
		await page.getByRole("link", { name: /^Account: ada/ }).waitFor();
		await order(page, "2 Work Street");
		await openCheckout(page);
		assert.equal(await page.getByLabel("Street and number").inputValue(), "2 Work Street");
		await page.getByRole("link", { name: /^1 Home Road/ }).click();
		await page.locator("input[name=address][value='1 Home Road']").waitFor();
		await check("a checkout with saved addresses");

		await visit(page, "/account");
		await check("an account with addresses");
		await page.getByRole("button", { name: /^Remove address 1 Home Road/ }).click();
		await page.waitForURL("/account#addresses");
		assert.equal(await page.getByText("1 Home Road").count(), 0);
		await page.getByText(/Received/).first().waitFor();

		await page.getByText("Add address").click();
		await check("the form of an address");
		const fields = { address: "3 Garden Lane", postcode: " ", city: "Leeds", country: "UK" };
		for (const [name, value] of Object.entries(fields)) await page.locator(`#${name}`).fill(value);
		await page.getByRole("button", { name: "Save address" }).click();
		await page.getByText("Please enter your postal code.").waitFor();
		// The focus is at the problem.
		if (javaScriptEnabled) await page.waitForFunction(() => document.activeElement?.id === "postcode");
		await check("an address with a problem");
		await page.getByLabel("Postal code").fill("LS1");
		await page.getByRole("button", { name: "Save address" }).click();
		await page.getByRole("button", { name: /^Remove address 3 Garden Lane/ }).waitFor();
		await page.getByRole("button", { name: "Sign out", exact: true }).click();
		await page.waitForURL("/");

		const otherDevice = await (await open({ javaScriptEnabled, ...options })).newPage();
		await signIn(otherDevice, email);
		await page.goto("/login");
		await page.getByRole("link", { name: "Forgot your password?" }).click();
		await check("the form for a link");
		await page.getByLabel("Email").fill(email);
		await page.getByRole("button", { name: "Send link" }).click();
		await page.getByRole("heading", { name: "Check your email" }).waitFor();
		await check("the answer to the form");
		// The mail is in the Worker's log. The scenario knows the link by its own token.
		const token = createHash("md5").update(email).digest("hex");
		const hash = createHash("sha256").update(token).digest("hex");
		await sql(`UPDATE password_resets SET token_hash = '${hash}' WHERE user = '${email}'`);
		await page.goto(`/reset/${token}`);
		const password = page.locator("input[name=password]");
		await password.fill("short");
		await page.getByRole("button", { name: "Save password" }).click();
		await page.locator("#password-problem").waitFor();
		if (javaScriptEnabled) {
			assert.equal(await page.evaluate(() => document.activeElement?.id), "password", "the focus is at the problem");
			await page.getByRole("button", { name: "Show password" }).click();
			assert.equal(await password.getAttribute("type"), "text");
		}
		await check("a password that is too short");
		await password.fill(NEW_PASSWORD);
		await page.getByRole("button", { name: "Save password" }).click();
		await page.waitForURL(/\/login/);
		await page.getByText("You are signed out on all devices.").waitFor();
		await otherDevice.goto("/account");
		await otherDevice.waitForURL(/\/login/);
		await check("signing in after a reset");
		await page.goto(`/reset/${token}`);
		assert.equal(await heading(page), "Link expired");
		await signIn(page, email, NEW_PASSWORD);
	}
}, [/status of 4(10|22)/]);
