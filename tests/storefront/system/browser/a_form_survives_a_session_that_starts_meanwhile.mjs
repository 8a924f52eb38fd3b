// A script of the page sends a request when the page is loaded, and the visitor uses the form meanwhile. Each request starts a session. The
// browser keeps the cookie of the later response, and the form gets the token of this session.

import { assert, inBrowser } from "./support.mjs";

const PAGE = "/products/mug";

await inBrowser(async (open) => {
	const guest = await (await open()).newPage();
	const visit = async (page) => (await page.goto(PAGE)).headers()["cache-status"];
	for (let visits = 0; !(await visit(guest)).includes("; hit"); visits += 1) assert.ok(visits < 50, "the page is stored");

	const context = await open();
	const page = await context.newPage();
	const seen = page.waitForResponse("**/seen");
	assert.match(await visit(page), /; hit/);
	await page.focus("button");
	await seen;
	const session = async () => (await context.cookies()).find(({ name }) => name === "sid").value;
	while ((await page.inputValue("[name=token]")) !== `of-${await session()}`) await page.waitForTimeout(20);
	await page.click("button");
	await page.waitForURL("**/bought");
});
