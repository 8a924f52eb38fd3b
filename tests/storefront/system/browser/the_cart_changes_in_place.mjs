// The cart changes without a navigation: on a light phone and a dark desktop. Stock that falls meanwhile shows in the cart.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, sql, visit } from "./support.mjs";
import { addToCart, counted, fillAddress, MUG } from "./shop.mjs";

const BOARD = "end-grain-chopping-board-oak-35-cm";
const PANS = ["20", "24", "28"].map((size) => `carbon-steel-frying-pan-${size}-cm`);

/** Fails unless the price and the button are on the screen without scrolling. */
async function canBuyAtOnce(page) {
	for (const part of [page.locator(".bar-price"), page.getByRole("button", { name: "Add to cart" })]) {
		const { y, height } = await part.boundingBox();
		assert.ok(y >= 0 && y + height <= PHONE.height, `at ${y}`);
	}
	assert.match(await page.locator(".bar-price").innerText(), /^€\d/);
}

await inBrowser(async (open) => {
	for (const [viewport, colorScheme] of [[PHONE, "light"], [DESKTOP, "dark"]]) {
		const context = await open({ viewport, colorScheme });
		const page = await context.newPage();
		const what = `${viewport.width} px, ${colorScheme}`;
		await visit(page, `/products/${BOARD}`);
		if (viewport === PHONE) await canBuyAtOnce(page);

		// Too many are refused on the page. The message does not lie behind the drawer of the next click.
		const quantity = page.getByRole("spinbutton", { name: "Quantity" });
		await quantity.fill("900");
		await page.getByRole("button", { name: "Add to cart" }).click();
		const toast = page.locator("[data-status]");
		await toast.getByText(/^Only \d+ in stock/).waitFor();
		await quantity.fill("1");
		await page.getByRole("button", { name: "Add to cart" }).click();
		await page.getByRole("dialog", { name: "Added to cart" }).waitFor();
		assert.equal(await toast.innerText(), "");
		await accessible(page, `the drawer (${what})`);
		await page.keyboard.press("Escape");
		let pieces = 1;
		for (const item of [MUG, ...PANS]) await addToCart(page, item, (pieces += 1));

		await visit(page, "/cart");
		assert.ok((await layoutShift(page)) < 0.05, what);
		await page.evaluate(() => { window.isSamePage = true; });
		const history = await page.evaluate(() => window.history.length);
		const line = page.locator(`#line-${PANS[2]}`);
		const increase = line.getByRole("button", { name: /^Increase/ });
		await increase.scrollIntoViewIfNeeded();
		const scroll = await page.evaluate(() => scrollY);

		// Everything changes at once, before the server's answer.
		let release;
		await page.route("**/cart", async (route) => {
			if (route.request().method() === "POST") await new Promise((resolve) => { release = resolve; });
			await route.continue();
		}, { times: 1 });
		await increase.click();
		await counted(page, 6);
		const total = page.locator("[data-total]").last();
		const expected = await total.innerText();
		await line.getByText("€116.00").waitFor();
		await line.getByText("€58.00 each").waitFor();
		while (!release) await page.waitForTimeout(20);
		release();
		await page.locator("[data-announcement]").getByText(`28 cm: 2. Total ${expected}.`).waitFor({ state: "attached" });
		assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Increase quantity of Carbon Steel Frying Pan, 28 cm");

		// A failed change is taken back.
		await page.route("**/cart", (route) => route.abort(), { times: 1 });
		await increase.click();
		await toast.getByText("No connection. Please try again.").waitFor();
		await counted(page, 6);
		assert.equal(await total.innerText(), expected);

		// Remove: the focus moves to the next line's button.
		await page.getByRole("button", { name: "Remove Carbon Steel Frying Pan, 20 cm" }).click();
		await counted(page, 5);
		assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Remove Carbon Steel Frying Pan, 24 cm");
		await page.locator("[data-announcement]").getByText(/20 cm removed/).waitFor({ state: "attached" });
		assert.ok(await page.evaluate(() => window.isSamePage), "no navigation");
		assert.equal(await page.evaluate(() => window.history.length), history);
		// The page became shorter by a line.
		assert.ok(Math.abs((await page.evaluate(() => scrollY)) - scroll) < 200, "the page does not jump");
		await accessible(page, `the cart (${what})`);

		// Stock that falls shows with the next answer and with the next visit.
		const stockOf = async (item) => (await sql(`SELECT stock FROM inventory WHERE id = '${item}'`))[0].stock;
		const [mugs, pans] = [await stockOf(MUG), await stockOf(PANS[2])];
		await sql(`UPDATE inventory SET stock = 0 WHERE id = '${MUG}'`);
		await page.getByRole("button", { name: "Increase quantity of End-Grain Chopping Board, Oak, 35 cm" }).click();
		await page.locator(`#line-${MUG}`).getByText("Sold out. Please remove this item.").waitFor();
		await page.getByRole("link", { name: "Checkout", exact: true }).click();
		await page.waitForFunction((id) => document.activeElement.closest(".line")?.id === id, `line-${MUG}`);
		await page.getByRole("button", { name: "Remove Enamel Mug, Sage" }).click();
		await sql(`UPDATE inventory SET stock = 1 WHERE id = '${PANS[2]}'`);
		await visit(page, "/cart");
		await line.getByText("Only 1 left. Please reduce the quantity.").waitFor();
		await line.getByRole("button", { name: /^Decrease/ }).click();
		await counted(page, 4);
		await page.locator("[data-announcement]").getByText(/28 cm: 1\. Total/).waitFor({ state: "attached" });
		assert.equal(await page.locator("main .problem:not(:empty)").count(), 0);

		// The order summary stands beside the form, and on a phone above it. The first wrong field gets the focus.
		await page.getByRole("link", { name: "Checkout", exact: true }).click();
		await page.waitForURL("/checkout", { waitUntil: "networkidle" });
		const [summary, button] = [await page.locator(".order-summary").boundingBox(), await page.getByRole("button", { name: /^Place order/ }).boundingBox()];
		if (viewport === PHONE) assert.ok(summary.y + summary.height <= button.y, JSON.stringify({ summary, button }));
		else assert.ok(summary.x >= button.x + button.width && summary.y < button.y, JSON.stringify({ summary, button }));
		await page.locator("main form[action='/checkout']").evaluate((form) => (form.noValidate = true));
		await fillAddress(page, { name: "Ada", email: "ada", address: "1 Home Road", city: " " });
		await page.getByRole("button", { name: /^Place order/ }).click();
		await page.locator("#email-problem").waitFor();
		await page.waitForFunction(() => document.activeElement?.id === "email");
		await accessible(page, `a checkout with problems (${what})`);
		await sql(`UPDATE inventory SET stock = CASE id WHEN '${MUG}' THEN ${mugs} ELSE ${pans} END WHERE id IN ('${MUG}', '${PANS[2]}')`);
		await context.close();
	}
}, [/status of 422/, /ERR_FAILED/]);
