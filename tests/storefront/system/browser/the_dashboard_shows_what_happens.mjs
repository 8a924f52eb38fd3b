// An operator opens the dashboard with the key, sees what visitors do, and asks why a page is cached; on a phone and on a desk, by day and
// by night.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, SHOP, visit } from "./support.mjs";

const MUG = "/products/enamel-mug-sage";
const text = (page, selector) => page.locator(selector).first().innerText();

/** Waits until the element's text is as asked. */
const says = (page, selector, pattern) => page.locator(selector).filter({ hasText: pattern }).first().waitFor();

await inBrowser(async (open) => {
	// Its first views, once they are written, make the item popular; then its page is stored.
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
			await says(page, "#key-problem", "no spaces");
			await page.getByLabel("Service key").fill("a-wrong-key");
			await page.keyboard.press("Enter");
			await says(page, "#key-problem", "not the service key");
			await page.getByLabel("Service key").fill(process.env.SERVICE_KEY);
			await page.keyboard.press("Enter");
			await says(page, "[data-items]", "enamel-mug-sage");
			await says(page, "[data-figure=hits]", "%");
			assert.notEqual(await page.locator("[data-chart=answers] canvas").count(), 0);
			assert.match(await page.locator("[data-chart=answers] .plot").getAttribute("aria-label"), /Stored page/);
			assert.equal(await text(page, "[data-empty=rows]"), "No row is scheduled. PUT /_edge/v1/rows/{id}/schedule schedules one.");

			await page.getByLabel("Address of a page").fill(MUG);
			await page.keyboard.press("Enter");
			await says(page, "[data-explained]", "Yes, it is cached.");
			await page.getByLabel("Address of a page").fill("/cart");
			await page.keyboard.press("Enter");
			await says(page, "[data-explained]", "No, it is not cached.");
			await accessible(page, what);

			// The key stays in the tab, and what is drawn again stands where its place was kept.
			await page.reload({ waitUntil: "networkidle" });
			await says(page, "[data-items]", "enamel-mug-sage");
			assert.ok((await layoutShift(page)) < 0.02, `${what} does not move: ${await layoutShift(page)}`);
			const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
			assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);

			await page.getByRole("button", { name: "Forget key" }).click();
			await page.getByLabel("Service key").waitFor();
			assert.equal(await page.evaluate(() => sessionStorage.length), 0);
			await context.close();
		}
	}
}, [/status of 401/]);
