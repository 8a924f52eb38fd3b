// A page whose own content is late shows the shared content first. Its form waits for the visitor's token.

import { assert, inBrowser } from "./support.mjs";

const PAGE = "/products/mug";

await inBrowser(async (open) => {
	const guest = await (await open()).newPage();
	const isHit = async () => (await guest.goto(PAGE)).headers()["cache-status"].includes("; hit");
	for (let visits = 0; !(await isHit()); visits += 1) assert.ok(visits < 50, "the page is stored");
	assert.equal(await guest.innerText("#mini"), "guest");

	const page = await (await open()).newPage();
	await page.goto("/login");
	await page.locator("#mini", { hasText: "ada" }).waitFor();
	await page.locator("mini-cart b", { hasText: "ada" }).waitFor();
	assert.equal(await page.inputValue("[name=token]"), "ada");
	assert.equal(await page.locator("script[data-hole]").count(), 0);

	await page.goto(PAGE);
	assert.equal(await page.inputValue("[name=token]"), "guest", "the content is late");
	await page.click("button");
	await page.waitForURL("**/buy?token=ada");
});
