// A guest buys from the home page to the confirmation. A wrong field shows its problem, and all values stay.

import { assert, inBrowser, service, visit } from "./support.mjs";
import { counted, fillAddress, heading, stock } from "./shop.mjs";

const BOARD = "end-grain-chopping-board-oak-35-cm";

await inBrowser(async (open) => {
	const page = await (await open()).newPage();
	const before = await stock(service, BOARD);

	await visit(page, "/");
	await page.getByRole("navigation", { name: "Categories" }).getByRole("link", { name: "Kitchen" }).click();
	await page.getByRole("link", { name: /End-Grain Chopping Board/ }).click();
	await page.getByRole("spinbutton", { name: "Quantity" }).fill("2");
	await page.getByRole("button", { name: "Add to cart" }).click();
	await counted(page, 2);
	await page.getByRole("dialog").getByRole("link", { name: "View cart" }).click();
	// The page's script listens to the fields from now on.
	await page.waitForURL("/cart", { waitUntil: "networkidle" });
	await page.getByRole("spinbutton", { name: /^Quantity of End/ }).fill("3");
	await page.keyboard.press("Tab");
	await counted(page, 3);

	// The server has confirmed 3. A refused quantity is taken back. The checkout still opens.
	await page.locator("[data-announcement]").getByText(/: 3\. Total/).waitFor({ state: "attached" });
	const quantity = page.getByRole("spinbutton", { name: /^Quantity of End/ });
	await quantity.fill("900");
	await page.keyboard.press("Tab");
	await page.locator("[data-problem]").getByText(/^Only \d+ in stock\./).waitFor();
	assert.equal(await quantity.inputValue(), "3");

	await page.getByRole("link", { name: "Checkout" }).click();
	// Turns off the browser's validation, so that the shop's is tested.
	await page.locator("main form[action='/checkout']").evaluate((form) => (form.noValidate = true));
	await fillAddress(page, { name: "Grace Hopper", email: "grace@", address: "1 Navy Yard" });
	await page.getByRole("button", { name: /^Place order/ }).click();
	const email = page.locator("main form [name=email]");
	await page.locator("[name=email][aria-invalid=true]").waitFor();
	const problem = await page.locator(`#${(await email.getAttribute("aria-describedby")).split(" ")[0]}`).innerText();
	assert.ok(problem.length > 10, `a problem beside the field: ${problem}`);
	assert.equal(await page.locator("main form [name=name]").inputValue(), "Grace Hopper");
	assert.equal(await page.locator("main form [name=address]").inputValue(), "1 Navy Yard");

	await fillAddress(page, { email: "grace@example.org" });
	await page.getByRole("button", { name: /^Place order/ }).click();
	await page.waitForURL(/\/orders\//);
	assert.match(await heading(page), /Thank you, Grace Hopper/);
	await page.getByRole("link", { name: "Chopping Board, Oak, 35 cm" }).first().waitFor();
	await counted(page, 0);

	await page.reload();
	assert.match(await heading(page), /Thank you/, "a reload places no second order");
	while ((await stock(service, BOARD)) !== before - 3) await page.waitForTimeout(100);
}, [/status of 422/]);
