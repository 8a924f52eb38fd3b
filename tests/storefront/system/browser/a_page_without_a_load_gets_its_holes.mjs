// A shop whose script replaces the page at a click on a link, as Turbo does. No page after the first one loads anew.

import { assert, inBrowser } from "./support.mjs";

const PAGES = ["/products/mug", "/products/cup", "/products/jug"];

await inBrowser(async (open) => {
	const guest = await (await open()).newPage();
	const isHit = async (path) => (await guest.goto(path)).headers()["cache-status"].includes("; hit");
	for (const path of PAGES) for (let visits = 0; !(await isHit(path)); visits += 1) assert.ok(visits < 50, `${path} is stored`);

	const openFirst = async () => {
		const page = await (await open()).newPage();
		await page.goto(PAGES[0]);
		await page.evaluate(() => { window.isFirst = true; });
		return page;
	};
	const show = async (page, path) => {
		await page.click(`a[href="${path}"]`);
		await page.locator("h1", { hasText: path }).waitFor();
	};
	const use = async (page, path, button) => {
		await page.click(button);
		await page.locator("output", { hasText: `${path} ${button} 200` }).waitFor();
	};

	// As a new visitor, and as one who has used the form of the page before.
	for (const hasUsedForm of [false, true]) {
		const page = await openFirst();
		if (hasUsedForm) await use(page, PAGES[0], "#form");
		// The first use of a form starts the session.
		let name = hasUsedForm ? "visitor" : "guest";
		for (const path of PAGES.slice(1)) {
			await show(page, path);
			for (const button of ["#form", "#script"]) await use(page, path, button);
			await page.locator("#name", { hasText: name }).waitFor();
			name = "visitor";
		}
		assert.ok(await page.evaluate(() => window.isFirst), "no page was loaded anew");
	}

	// The content of the first page arrives when the second page is shown.
	const page = await openFirst();
	const requested = new Promise((resolve) => {
		page.route("**/_edge/v1/holes?*", async (route) => {
			const response = await route.fetch();
			resolve();
			await page.locator("h1", { hasText: PAGES[1] }).waitFor();
			await route.fulfill({ response });
		}, { times: 1 });
	});
	await page.hover("#form");
	await requested;
	await show(page, PAGES[1]);
	for (const button of ["#form", "#script"]) await use(page, PAGES[1], button);
});
