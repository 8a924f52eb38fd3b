// An operator opens the dashboard with the service key, sees visitor activity, and looks up whether a page is cached.
// On a phone and a desktop, in light and dark.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, SHOP, visit } from "./support.mjs";

const MUG = "/products/enamel-mug-sage";
const text = (page, selector) => page.locator(selector).first().innerText();

/** Waits until the element's text matches. */
const says = (page, selector, pattern) => page.locator(selector).filter({ hasText: pattern }).first().waitFor();

await inBrowser(async (open) => {
	// The item gets a rank when its first views are written; then its page is cached.
	for (let hits = 0; hits < 10; ) if (/; hit/.test((await fetch(SHOP + MUG)).headers.get("cache-status"))) hits += 1;

	for (const [width, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
		for (const colorScheme of ["light", "dark"]) {
			const what = `the dashboard (${width}, ${colorScheme})`;
			const context = await open({ viewport, colorScheme });
			const page = await context.newPage();
			assert.equal(await visit(page, "/_edge"), 200);
			await accessible(page, `${what}, locked`);

			await page.getByLabel("Service key").fill("a wrong key");
			await page.keyboard.press("Enter");
			await says(page, "#key-problem", "contains a space");
			await page.getByLabel("Service key").fill("a-wrong-key");
			await page.keyboard.press("Enter");
			await says(page, "#key-problem", "service key is incorrect");
			await page.getByLabel("Service key").fill(process.env.SERVICE_KEY);
			await page.keyboard.press("Enter");
			await says(page, "[data-items]", "enamel-mug-sage");
			await says(page, "[data-figure=hits]", "%");
			assert.notEqual(await page.locator("[data-chart=responses] canvas").count(), 0);
			assert.match(await page.locator("[data-chart=responses] .plot").getAttribute("aria-label"), /Hit: /);
			assert.equal(await text(page, "[data-empty=rows]"), "No rows are scheduled. Schedule a row to show its stock and its sale times without a query for each visitor.");

			await page.getByLabel("Page URL or path").fill(MUG);
			await page.keyboard.press("Enter");
			await says(page, "[data-verdict]", "Cached.");
			await page.getByLabel("Page URL or path").fill("/cart");
			await page.keyboard.press("Enter");
			await says(page, "[data-verdict]", "Not cached.");
			await accessible(page, what);

			// A reload keeps the key, and nothing moves while the dashboard loads.
			await page.reload({ waitUntil: "networkidle" });
			await says(page, "[data-items]", "enamel-mug-sage");
			assert.ok((await layoutShift(page)) < 0.02, `${what} has no layout shift: ${await layoutShift(page)}`);
			const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
			assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);

			await page.getByRole("button", { name: "Forget key" }).click();
			await page.getByLabel("Service key").waitFor();
			assert.equal(await page.evaluate(() => sessionStorage.length), 0);
			await context.close();
		}
	}
}, [/status of 401/]);
