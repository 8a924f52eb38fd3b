// Search, suggestions, filters and variants, with and without JavaScript, on a phone and a desktop.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, visit } from "./support.mjs";
import { heading } from "./shop.mjs";

await inBrowser(async (open) => {
	for (const viewport of [PHONE, DESKTOP]) {
		for (const colorScheme of ["light", "dark"]) {
			const what = `${viewport.width} px, ${colorScheme}`;
			const page = await (await open({ viewport, colorScheme })).newPage();
			await visit(page, "/");
			const field = page.getByRole("combobox", { name: "Search products" }).or(page.getByRole("searchbox", { name: "Search products" }));
			await field.focus();
			await field.pressSequentially("ketle");
			const option = page.getByRole("option", { name: /Gooseneck Kettle/ });
			await option.first().waitFor();
			assert.equal(await field.getAttribute("aria-expanded"), "true");
			await accessible(page, `suggestions (${what})`);
			await page.keyboard.press("Escape");
			assert.equal(await option.first().isVisible(), false);
			await page.keyboard.press("ArrowDown");
			const active = await field.getAttribute("aria-activedescendant");
			assert.match(await page.locator(`#${active}`).innerText(), /Kettle/);
			await page.keyboard.press("Enter");
			await page.waitForURL(/\/products\/gooseneck-kettle/);

			// The text itself is searched with Enter. Equal searches have one URL.
			await page.getByLabel("Search products").fill("  KNIFE ");
			await page.keyboard.press("Enter");
			await page.waitForURL("/search?q=knife");
			assert.match(await heading(page), /Results for “knife”/);
			const chefs = page.locator("main .card").filter({ hasText: "Chef's Knife" });
			assert.equal(await chefs.count(), 1, "three sizes are one card");
			assert.match(await chefs.innerText(), /From €74\.00\s+3 options/);
			assert.ok((await layoutShift(page)) < 0.05, what);
			await accessible(page, `a search (${what})`);
			const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
			assert.ok(wider <= 0, `${what}: ${wider} px wider than the screen`);

			await page.getByLabel("Sort by").selectOption("price-high");
			await page.waitForURL("/search?q=knife&sort=price-high");
			await visit(page, "/search?q=xylophone");
			await page.getByRole("link", { name: "All products" }).waitFor();
			await accessible(page, `no results (${what})`);
			await page.context().close();
		}
	}

	const page = await (await open({ javaScriptEnabled: false })).newPage();
	await page.goto("/");
	await page.getByLabel("Search products").fill("Pan");
	await page.keyboard.press("Enter");
	await page.waitForURL("/search?q=pan");
	await page.goto("/categories/kitchen");
	await page.getByLabel("In stock").check();
	await page.locator("main select[name=price]").selectOption("over-100");
	await page.getByRole("button", { name: "Apply" }).click();
	await page.waitForURL("/categories/kitchen?price=over-100&stock=1");
	await page.getByRole("link", { name: /Cast Iron Casserole/ }).waitFor();
	await page.goto("/products/cast-iron-casserole-ink");
	await page.locator("main").getByRole("link", { name: /^Cream/ }).click();
	await page.waitForURL("/products/cast-iron-casserole-cream");
	assert.equal(await heading(page), "Cast Iron Casserole, Cream");
});
