// A shop whose forms need a token of the visitor's session. Forms work without JavaScript, if a script sends them, and if a script
// read the token when the page was loaded.

import { assert, inBrowser } from "./support.mjs";

const PAGE = "/products/mug";

await inBrowser(async (open) => {
	// The page is not stored at first, and the shop sends it itself for two seconds after a purchase.
	const visit = async (page) => {
		for (let visits = 0; !(await page.goto(PAGE)).headers()["cache-status"].includes("; hit"); visits += 1) {
			assert.ok(visits < 50, "the page is stored");
			await page.waitForTimeout(100);
		}
	};
	await visit(await (await open()).newPage());

	for (const [javaScriptEnabled, button] of [[false, "#form"], [true, "#submit"], [true, "#fetch"]]) {
		const context = await open({ javaScriptEnabled });
		const page = await context.newPage();
		// As a new visitor, and as one with a session.
		for (const purchase of ["first", "second"]) {
			await visit(page);
			const session = (await context.cookies()).find(({ name }) => name === "sid")?.value;
			assert.equal(session !== undefined, purchase === "second", "a visit starts no session, the purchase does");
			await page.click(button);
			await page.waitForURL("**/bought");
			const own = (await context.cookies()).find(({ name }) => name === "sid").value;
			assert.equal(session ?? own, own, "the session stays");
		}
	}
});
