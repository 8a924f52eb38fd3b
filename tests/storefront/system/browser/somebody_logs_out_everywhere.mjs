// Two devices of one person: each sees both, one ends the other, and "everywhere" ends all.

import { assert, inBrowser, visit } from "./support.mjs";
import { heading, signIn, signUp } from "./shop.mjs";

const MAIL = "grace@example.org";

await inBrowser(async (open) => {
	const [laptop, phone] = [await open(), await open({ viewport: { width: 390, height: 844 } })];
	const [one, two] = [await laptop.newPage(), await phone.newPage()];
	await signUp(one, MAIL, "Grace");
	await signIn(two, MAIL);

	await visit(one, "/account");
	const devices = one.locator("[data-devices] > li");
	assert.equal(await devices.count(), 2, await devices.allInnerTexts());
	await one.locator("[data-devices] li").filter({ has: one.getByRole("button") }).getByRole("button").first().click();
	await one.waitForFunction(() => document.querySelectorAll("[data-devices] > li").length === 1);
	await visit(two, "/account");
	assert.match(new URL(two.url()).pathname, /login/, "the other device is signed out");

	await signIn(two, MAIL);
	await visit(one, "/account");
	await one.getByRole("button", { name: /everywhere/ }).click();
	await one.waitForURL((url) => url.pathname !== "/account");
	for (const page of [one, two]) {
		await visit(page, "/account");
		assert.match(new URL(page.url()).pathname, /login/);
		assert.match(await heading(page), /Sign in/);
	}
});
