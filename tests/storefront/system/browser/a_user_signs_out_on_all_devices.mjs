// Two devices of one user: the account lists both, one signs out the other, and "Sign out on all devices" signs out
// both.

import { assert, inBrowser, visit } from "./support.mjs";
import { heading, signIn, signUp } from "./shop.mjs";

const EMAIL = "grace@example.org";

await inBrowser(async (open) => {
	const [laptop, phone] = [await open(), await open({ viewport: { width: 390, height: 844 } })];
	const [one, two] = [await laptop.newPage(), await phone.newPage()];
	await signUp(one, EMAIL, "Grace");
	await signIn(two, EMAIL);

	await visit(one, "/account");
	const devices = one.locator("[data-devices] > li");
	assert.equal(await devices.count(), 2, await devices.allInnerTexts());
	await one.locator("[data-devices] li").filter({ has: one.getByRole("button") }).getByRole("button").first().click();
	await one.waitForFunction(() => document.querySelectorAll("[data-devices] > li").length === 1);
	await visit(two, "/account");
	assert.match(new URL(two.url()).pathname, /login/, "the other device is signed out");

	await signIn(two, EMAIL);
	await visit(one, "/account");
	await one.getByRole("button", { name: /all devices/ }).click();
	await one.waitForURL((url) => url.pathname !== "/account");
	for (const page of [one, two]) {
		await visit(page, "/account");
		assert.match(new URL(page.url()).pathname, /login/);
		assert.match(await heading(page), /Sign in/);
	}
});
