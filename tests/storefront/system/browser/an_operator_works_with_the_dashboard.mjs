// An operator explains and purges pages, runs a job, schedules a row, ends a session, reads abandoned carts and adds
// pieces to a flash sale: on a light desktop. Then a dark phone shows the same panels. axe-core checks both.

import { accessible, assert, DESKTOP, inBrowser, PHONE, service, SHOP, visit } from "./support.mjs";

const MUG = "/products/enamel-mug-sage";
const SALE = "cast-iron-casserole-sage";

/** Starts a session of a user with an item in its cart. */
async function shopper(user, device) {
	const { cookie } = await service("POST", "/sessions", { user, device });
	const headers = { cookie, origin: SHOP, "content-type": "application/json" };
	const body = JSON.stringify({ quantity: 2 });
	const answer = await fetch(`${SHOP}/_edge/v1/cart/items/enamel-mug-sage`, { method: "PUT", headers, body });
	assert.equal(answer.status, 200, await answer.text());
	return headers;
}

async function unlock(page, fragment = "") {
	await visit(page, `/_edge/${fragment}`);
	await page.getByLabel("Service key").fill(process.env.SERVICE_KEY);
	await page.keyboard.press("Enter");
	await page.locator("[data-items] tr").first().waitFor();
}

/** Waits until the notice or a panel has the text. */
const says = (page, text) => page.getByText(text).first().waitFor();

await inBrowser(async (open) => {
	for (let hits = 0; hits < 3; ) if (/; hit/.test((await fetch(SHOP + MUG)).headers.get("cache-status"))) hits += 1;
	await service("PUT", `/rows/${SALE}/schedule`, { every: 60 });
	for (let user = 0; user < 6; user += 1) {
		await shopper(`user-${user}`);
		await service("DELETE", `/users/user-${user}/sessions`);
	}
	const ada = await shopper("ada@example.com", "The phone");
	await fetch(`${SHOP}/_edge/v1/flash/${SALE}/reservations`, { method: "POST", headers: ada });

	const page = await (await open({ viewport: DESKTOP })).newPage();
	await unlock(page);
	const url = page.getByLabel("Page URL or path", { exact: true });
	const dialog = page.getByRole("dialog");
	const focused = () => page.evaluate(() => document.activeElement.textContent.trim());

	// Explain and purge.
	await page.locator("[data-items]").getByRole("link", { name: "enamel-mug-sage", exact: true }).click();
	await says(page, "Cached.");
	assert.equal(await url.inputValue(), MUG);
	await page.getByRole("button", { name: "Purge", exact: true }).click();
	await says(page, `Purged: ${MUG}.`);
	await says(page, "Cacheable, not cached yet.");
	for (const [path, reason] of [
		["/cart", "The path is in CART_ROUTES"],
		["/no-such-page", "The shop has no page at this URL."],
		["https://other.example/", "This is not a page of this shop."],
		["/_edge/", "This is not a page of this shop."],
	]) {
		await url.fill(path);
		await page.keyboard.press("Enter");
		await says(page, reason);
	}
	await url.fill(MUG);
	await page.keyboard.press("Enter");
	await says(page, "Cacheable, not cached yet.");
	await url.fill("");
	assert.equal(await page.locator("[data-verdict] *, [data-facts] *").count(), 0, "an empty field has no explanation");

	// A change of the field clears its problem.
	await page.keyboard.press("Enter");
	await says(page, "Enter a URL or a path such as /products/mug.");
	await url.fill(MUG);
	assert.equal(await page.locator("[data-explain-problem]").textContent(), "");
	await page.getByRole("button", { name: "Purge", exact: true }).click();
	await says(page, `Purged: ${MUG}.`);
	await url.fill("");

	// A popover opens at its button.
	const why = page.getByRole("button", { name: "What are visitors online?" });
	await why.click();
	const [button, popover] = [await why.boundingBox(), await page.locator("#why-online").boundingBox()];
	assert.ok(Math.abs(popover.y - button.y - button.height) < 20 && popover.x <= button.x + button.width, JSON.stringify({ button, popover }));
	assert.ok(popover.x + popover.width <= (await page.evaluate(() => document.documentElement.scrollWidth)), "it is not cut off");
	// It stays at its button while the page scrolls.
	await page.mouse.wheel(0, 120);
	await page.waitForFunction((before) => Math.abs(document.querySelector("#why-online").getBoundingClientRect().y - before) > 20, popover.y);
	const [scrolled, moved] = [await why.boundingBox(), await page.locator("#why-online").boundingBox()];
	assert.ok(Math.abs(moved.y - scrolled.y - scrolled.height) < 20, JSON.stringify({ scrolled, moved }));
	await page.keyboard.press("Escape");

	// Soft and hard purges of an item and a tag.
	await fetch(SHOP + MUG);
	await url.fill(MUG);
	await page.keyboard.press("Enter");
	await says(page, "Cached.");
	await page.getByRole("button", { name: "Mark as stale" }).click();
	await says(page, `Marked as stale: ${MUG}.`);
	await says(page, "Visitors get the cached page, which is stale");
	await page.getByRole("button", { name: "Purge tag product" }).click();
	await says(page, "Purged: pages with the tag product.");
	await says(page, "Cacheable, not cached yet.");
	await url.fill("");

	// A purge of everything asks first. Escape cancels it, and the focus returns.
	await page.getByText("Purge an item, a tag or everything").click();
	await page.getByLabel("Item", { exact: true }).fill("enamel-mug-sage");
	await page.locator("[name=mode][value=soft]").check();
	await page.getByRole("button", { name: "Purge pages" }).click();
	await says(page, "Marked as stale: pages of enamel-mug-sage.");
	await page.locator("[name=mode][value=hard]").check();
	await page.getByRole("button", { name: "Purge pages" }).click();
	await says(page, "Purged: pages of enamel-mug-sage.");
	await page.locator("[name=kind]").selectOption("all");
	const purge = page.getByRole("button", { name: "Purge pages" });
	await purge.click();
	await accessible(page, "the confirmation");
	assert.equal(await focused(), "Cancel");
	await page.keyboard.press("Escape");
	assert.equal(await focused(), "Purge pages");
	await purge.click();
	await dialog.getByRole("button", { name: "Purge all pages" }).click();
	await says(page, "Purged: all pages.");

	// Jobs and rows. An undo restores the period.
	await page.getByRole("button", { name: "Run now Ranking rescale" }).click();
	await says(page, /Ranking rescale has run/);
	await page.getByRole("button", { name: "Schedule a row" }).click();
	await dialog.getByLabel("Row id").fill("not a row");
	await dialog.getByRole("button", { name: "Save" }).click();
	await says(page, /Enter an id of 1 to 64/);
	await dialog.getByLabel("Row id").fill("enamel-mug-sage");
	await dialog.getByLabel("Refresh every (seconds)").fill("30");
	await page.keyboard.press("Enter");
	await says(page, "Row enamel-mug-sage is refreshed every 30 s.");
	const edit = page.getByRole("button", { name: "Edit enamel-mug-sage" });
	await edit.click();
	await dialog.getByText("price_cents", { exact: true }).waitFor();
	await accessible(page, "a row");
	await dialog.getByRole("button", { name: "Stop refreshing" }).click();
	await page.getByRole("dialog", { name: "Stop refreshing enamel-mug-sage?" }).getByRole("button", { name: "Stop refreshing" }).click();
	await says(page, "Row enamel-mug-sage is not refreshed any more.");
	await edit.waitFor({ state: "detached" });
	await page.getByRole("button", { name: "Undo" }).click();
	await says(page, "Row enamel-mug-sage is refreshed every 30 s again.");
	assert.equal((await service("GET", "/rows/enamel-mug-sage/schedule")).every, 30);

	// Abandoned carts, page by page.
	await says(page, "Page 1");
	const [newer, older] = ["Newer", "Older"].map((name) => page.getByRole("button", { name }));
	await older.click();
	await says(page, "Page 2");
	await page.locator("[data-abandoned]").getByRole("link", { name: "user-0" }).waitFor();
	assert.ok(await older.isDisabled());
	assert.equal(await focused(), "Newer");
	await newer.click();
	await says(page, "Page 1");

	// A flash sale: its reservations, more pieces, and the undo.
	await page.getByLabel("Row of the sale").fill(SALE);
	await page.keyboard.press("Enter");
	await page.getByRole("img", { name: "0 sold, 1 held and 24 left of 25 pieces" }).waitFor();
	await page.getByLabel("Pieces to add").fill("5");
	await page.keyboard.press("Enter");
	await page.getByRole("img", { name: "0 sold, 1 held and 29 left of 30 pieces" }).waitFor();
	await page.getByRole("button", { name: "Undo" }).click();
	await says(page, `${SALE} has 25 pieces again.`);

	// The holder's session: its cart, and its end.
	await page.locator("[data-holds]").getByRole("link", { name: "ada@example.com" }).click();
	await says(page, "ada@example.com: 1 session.");
	await page.getByRole("button", { name: "View The phone" }).click();
	await dialog.getByText("Cart: 2 pieces").waitFor();
	await accessible(page, "a session");
	await dialog.getByRole("button", { name: "Close" }).click();
	await page.getByRole("button", { name: "End The phone" }).click();
	await dialog.getByRole("button", { name: "End session" }).click();
	await says(page, "Ended the session of ada@example.com on The phone.");
	await says(page, /ada@example.com has no session/);

	// On a phone in the dark, an address opens what it names.
	await shopper("eve@example.com", "Firefox on Windows");
	const phone = await (await open({ viewport: PHONE, colorScheme: "dark" })).newPage();
	await unlock(phone, "#user=eve%40example.com");
	await says(phone, "eve@example.com: 1 session.");
	await phone.getByLabel("Page URL or path", { exact: true }).fill("/account");
	await phone.keyboard.press("Enter");
	await says(phone, "Not cached.");
	await phone.getByLabel("Row of the sale").fill(SALE);
	await phone.keyboard.press("Enter");
	await phone.getByRole("img", { name: /left of 25 pieces/ }).waitFor();
	await phone.getByText("Purge an item, a tag or everything").click();
	await accessible(phone, "the dashboard on a phone");
	const wider = await phone.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
	assert.ok(wider <= 0, `the dashboard is ${wider} px wider than a phone`);
	await phone.getByRole("button", { name: "Edit enamel-mug-sage" }).click();
	await accessible(phone, "a row on a phone");
}, [/status of 40[14]/]);
