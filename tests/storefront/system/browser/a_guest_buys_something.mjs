// From the home page to the confirmation, without an account. What was typed wrong is told beside its field, and nothing is lost.

import { assert, inBrowser, service, visit } from "./support.mjs";
import { counted, fillAddress, heading, stock } from "./shop.mjs";

const BOARD = "end-grain-chopping-board-oak-35-cm";

await inBrowser(async (open) => {
	const page = await (await open()).newPage();
	const before = await stock(service, BOARD);

	await visit(page, "/");
	await page.getByRole("navigation", { name: "Categories" }).getByRole("link", { name: "Kitchen" }).click();
	await page.getByRole("link", { name: "Chopping Board, Oak, 35 cm" }).click();
	await page.getByRole("spinbutton", { name: "Quantity" }).fill("2");
	await page.getByRole("button", { name: "Add to cart" }).click();
	await counted(page, 2);

	await page.getByRole("link", { name: "Cart" }).first().click();
	await page.getByRole("spinbutton", { name: /^Quantity of End/ }).fill("3");
	await page.keyboard.press("Tab");
	await counted(page, 3);

	await page.getByRole("link", { name: "Check out" }).click();
	// Not the browser's own check, but the shop's.
	await page.locator("main form[action='/checkout']").evaluate((form) => (form.noValidate = true));
	await fillAddress(page, { name: "Grace Hopper", mail: "grace@", address: "1 Navy Yard\nArlington" });
	await page.getByRole("button", { name: /^Buy/ }).click();
	const mail = page.locator("main form [name=mail]");
	await page.locator("[name=mail][aria-invalid=true]").waitFor();
	const problem = await page.locator(`#${(await mail.getAttribute("aria-describedby")).split(" ")[0]}`).innerText();
	assert.ok(problem.length > 10, `a problem beside the field: ${problem}`);
	assert.equal(await page.locator("main form [name=name]").inputValue(), "Grace Hopper");
	assert.equal(await page.locator("main form [name=address]").inputValue(), "1 Navy Yard\nArlington");

	await fillAddress(page, { mail: "grace@example.org" });
	await page.getByRole("button", { name: /^Buy/ }).click();
	await page.waitForURL(/\/orders\//);
	assert.match(await heading(page), /Thank you, Grace Hopper/);
	await page.getByRole("link", { name: "Chopping Board, Oak, 35 cm" }).first().waitFor();
	await counted(page, 0);

	await page.reload();
	assert.match(await heading(page), /Thank you/, "a reload orders nothing again");
	while ((await stock(service, BOARD)) !== before - 3) await page.waitForTimeout(100);
}, [/status of 422/]);
