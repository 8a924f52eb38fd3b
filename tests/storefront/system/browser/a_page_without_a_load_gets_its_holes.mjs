// A shop whose script replaces the page at a click on a link, as Turbo does. No page after the first one loads anew.

import { assert, inBrowser } from "./support.mjs";

const PAGES = ["/products/mug", "/products/cup", "/products/jug"];

await inBrowser(async (open) => {
	const guest = await (await open()).newPage();
	const isHit = async (path) => (await guest.goto(path)).headers()["cache-status"].includes("; hit");
	for (const path of PAGES) for (let visits = 0; !(await isHit(path)); visits += 1) assert.ok(visits < 50, `${path} is stored`);

	// As a new visitor, and as one who has used the form of the page before.
	for (const hasUsedForm of [false, true]) {
		const page = await (await open()).newPage();
		await page.goto(PAGES[0]);
		await page.evaluate(() => { window.isFirst = true; });
		for (const path of PAGES.slice(1)) {
			if (hasUsedForm) await page.click("#form");
			await page.click(`a[href="${path}"]`);
			await page.locator("h1", { hasText: path }).waitFor();
			for (const button of ["#form", "#script"]) {
				await page.click(button);
				await page.locator("output", { hasText: `${path} ${button} 200` }).waitFor();
			}
			await page.locator("#name", { hasText: "visitor" }).waitFor();
		}
		assert.ok(await page.evaluate(() => window.isFirst), "no page was loaded anew");
	}
});
