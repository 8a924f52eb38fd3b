// Two visitors and one piece. Both wait for the start of the sale; one reserves the piece, and the other sees it sold
// out. No page is reloaded.

import { assert, inBrowser, service, sql, visit } from "./support.mjs";
import { fillAddress, heading, signUp } from "./shop.mjs";

const CASSEROLE = "cast-iron-casserole-sage";

await inBrowser(async (open) => {
	const [ada, grace] = [await (await open()).newPage(), await (await open()).newPage()];
	await signUp(ada, "ada@example.org", "Ada");
	await signUp(grace, "grace@example.org", "Grace");

	await sql(`UPDATE inventory SET sale_pieces = 1, sale_starts_at = unixepoch() + 8, sale_ends_at = unixepoch() + 600 WHERE id = '${CASSEROLE}'`);
	await service("PUT", `/rows/${CASSEROLE}/schedule`, { every: 1 });
	const message = (page, text) => page.locator("[data-flash]").getByText(text).first().waitFor();
	for (const page of [ada, grace]) {
		await visit(page, `/flash/${CASSEROLE}`);
		await message(page, /Starts in/);
		assert.equal(await page.getByRole("button", { name: "Reserve now" }).isVisible(), false);
		const countdown = await page.locator("[data-countdown]").innerText();
		assert.match(countdown, /\d/, "the countdown runs");
	}

	const [first, second] = [ada, grace].map((page) => page.getByRole("button", { name: "Reserve now" }));
	await Promise.all([first.waitFor(), second.waitFor()]);
	await first.click();
	await ada.getByRole("link", { name: "Checkout" }).waitFor();
	await second.click().catch(() => {});
	await message(grace, "1 reserved by other customers");
	assert.equal(await grace.getByRole("link", { name: "Checkout" }).isVisible(), false);

	await ada.getByRole("link", { name: "Checkout" }).click();
	await fillAddress(ada, { name: "Ada Lovelace", email: "ada@example.org", address: "12 St James's Square" });
	await ada.getByRole("button", { name: /^Place order/ }).click();
	await ada.waitForURL(/\/orders\//);
	assert.match(await heading(ada), /Thank you, Ada/);
	await message(grace, "All items are sold.");
	await grace.getByRole("link", { name: "View at regular price" }).waitFor();
	const [{ sale_sold }] = await sql(`SELECT sale_sold FROM inventory WHERE id = '${CASSEROLE}'`);
	assert.equal(sale_sold, 1);
}, [/status of 409/]);
