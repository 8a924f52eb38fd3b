// Navigation, the cart and the checkout are plain links and forms.

import { assert, inBrowser } from "./support.mjs";
import { fillAddress, heading, MUG } from "./shop.mjs";

await inBrowser(async (open) => {
	const page = await (await open({ javaScriptEnabled: false })).newPage();
	await page.goto("/");
	await page.getByRole("navigation", { name: "Categories" }).getByRole("link", { name: "Tableware" }).click();
	await page.goto(`/products/${MUG}`);
	await page.getByRole("spinbutton", { name: "Quantity" }).fill("2");
	await page.getByRole("button", { name: "Add to cart" }).click();
	await page.waitForURL("/cart");
	const empty = page.getByText("There is nothing in it yet.");
	const quantity = page.getByRole("spinbutton", { name: /^Quantity of Enamel Mug/ });
	assert.equal(await quantity.inputValue(), "2");

	await quantity.fill("3");
	await page.getByRole("button", { name: /^Change/ }).click();
	// As the next page says it, not as it was typed into this one.
	await page.locator("main input[name=quantity][value='3']").waitFor();
	assert.equal(await quantity.inputValue(), "3");

	await page.getByRole("link", { name: "Check out" }).click();
	await fillAddress(page, { name: "Alan Turing", mail: "alan@example.org", address: "Bletchley Park" });
	await page.getByRole("button", { name: /^Buy/ }).click();
	await page.waitForURL(/\/orders\//);
	assert.match(await heading(page), /Thank you, Alan Turing/);
	await page.goto("/cart");
	await empty.waitFor();
	assert.equal(await page.getByRole("link", { name: "Check out" }).count(), 0, "what was bought has left the cart");

	await page.goto(`/products/${MUG}`);
	await page.getByRole("button", { name: "Add to cart" }).click();
	await page.waitForURL("/cart");
	await page.getByRole("button", { name: /^Remove/ }).click();
	await empty.waitFor();
	assert.equal(await page.getByRole("link", { name: "Check out" }).count(), 0, "what was removed has left the cart");
});
