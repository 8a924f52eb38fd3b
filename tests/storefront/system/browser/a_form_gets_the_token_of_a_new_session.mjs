// A shop whose forms need a token of the visitor's session. A visitor without cookies gets the stored page, and its form works.

import { assert, inBrowser } from "./support.mjs";

const PAGE = "/products/mug";

await inBrowser(async (open) => {
	const guest = await (await open()).newPage();
	const visit = async (page) => (await page.goto(PAGE)).headers()["cache-status"];
	for (let visits = 0; !(await visit(guest)).includes("; hit"); visits += 1) assert.ok(visits < 50, "the page is stored");

	for (const use of [(page) => page.click("#form"), (page) => page.press("#quantity", "Enter"), (page) => page.click("#script"), (page) => page.click("#link")]) {
		const context = await open();
		const page = await context.newPage();
		assert.match(await visit(page), /; hit/);
		assert.deepEqual(await context.cookies(), [], "a visit starts no session");
		await page.fill("#quantity", "3");
		await use(page);
		await page.waitForURL("**/bought?quantity=3");
	}
});
