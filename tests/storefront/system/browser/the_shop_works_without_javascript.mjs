// Without JavaScript, navigation, cart and checkout work as plain links and forms.

import { assert, inBrowser } from "./support.mjs";
import { fillAddress, heading, MUG } from "./shop.mjs";

await inBrowser(async (open) => {
	const page = await (await open({ javaScriptEnabled: false })).newPage();
	await page.goto("/");
	await page.getByRole("navigation", { name: "Categories" }).getByRole("link", { name: "Tableware" }).click();
	await page.goto(`/products/${MUG}`);
	await page.getByRole("spinbutton", { name: "Quantity" }).fill("2");
	await page.getByRole("button", { name: "Add to cart" }).click();
	await page.waitForURL(/\/cart/);
	const empty = page.getByText("Your cart is empty.");
	const quantity = page.getByRole("spinbutton", { name: /^Quantity of Enamel Mug/ });
	assert.equal(await quantity.inputValue(), "2");

	await quantity.fill("3");
	await page.getByRole("button", { name: /^Update/ }).click();
	// The attribute is in the next page only; here the value was typed.
	await page.locator("main input[name=quantity][value='3']").waitFor();
	assert.equal(await quantity.inputValue(), "3");

	await page.getByRole("link", { name: "Checkout" }).click();
	await fillAddress(page, { name: "Alan Turing", email: "alan@example.org", address: "Bletchley Park" });
	await page.getByRole("button", { name: /^Place order/ }).click();
	await page.waitForURL(/\/orders\//);
	assert.match(await heading(page), /Thank you, Alan Turing/);
	await page.goto("/cart");
	await empty.waitFor();
	assert.equal(await page.getByRole("link", { name: "Checkout" }).count(), 0, "the bought item is not in the cart");

	await page.goto(`/products/${MUG}`);
	await page.getByRole("button", { name: "Add to cart" }).click();
	await page.waitForURL(/\/cart/);
	await page.getByRole("button", { name: /^Remove/ }).click();
	await empty.waitFor();
	assert.equal(await page.getByRole("link", { name: "Checkout" }).count(), 0, "the removed item is not in the cart");

	// A flash sale says why its button does nothing.
	await page.goto("/flash/cast-iron-casserole-sage");
	const buttons = page.locator("main .flash :is(button, a.button):visible");
	assert.deepEqual(await buttons.allInnerTexts(), ["Reserve now"]);
	assert.ok(await buttons.isDisabled());
	assert.match(await page.locator(`#${await buttons.getAttribute("aria-describedby")}`).innerText(), /needs JavaScript/);

	// An error page has the header, and its search works.
	await page.goto("/nowhere");
	assert.equal(await heading(page), "Page not found");
	await page.getByLabel("Search products").fill("mug");
	await page.keyboard.press("Enter");
	await page.waitForURL("/search?q=mug");
}, [/status of 404/]);
