// Double clicks, two tabs and lost connections: each has the result that the visitor wants, and the page says it.

import { assert, inBrowser, visit } from "./support.mjs";
import { addToCart, counted, heading, MUG, PASSWORD } from "./shop.mjs";

const HAMMOCK = "hammock-sky";
const focusedLabel = (page) => page.evaluate(() => document.activeElement.ariaLabel);

/** Without the script of the drawer, the page still says that the item is in the cart. */
async function addsWithoutDrawer(open) {
	const page = await (await open()).newPage();
	await visit(page, `/products/${MUG}`);
	await page.route("**/drawer.js*", (route) => route.abort());
	await page.getByRole("button", { name: "Add to cart" }).dblclick();
	await page.locator("[data-status]").getByText("Added to cart.").waitFor();
	await counted(page, 1);
	await page.locator("[data-status]").getByRole("link", { name: "View cart" }).click();
	await page.waitForURL("/cart");
}

/** A line that another tab adds appears, and one that it removes disappears. The focus stays. */
async function usesTwoTabs(open) {
	const context = await open();
	const [first, second] = [await context.newPage(), await context.newPage()];
	await addToCart(first, MUG, 1);
	await visit(first, "/cart");
	await addToCart(second, HAMMOCK, 2);
	const increase = first.getByRole("button", { name: "Increase quantity of Enamel Mug, Sage" });
	await increase.click();
	await first.locator(`#line-${HAMMOCK}`).waitFor();
	await counted(first, 3);
	assert.equal(await first.locator(`#line-${MUG} [name=quantity]`).inputValue(), "2");
	assert.equal(await focusedLabel(first), "Increase quantity of Enamel Mug, Sage");
	// The new lines change in place, too.
	await first.getByRole("button", { name: "Increase quantity of Hammock, Sky" }).click();
	await counted(first, 4);
	await first.locator("[data-announcement]").getByText("Hammock, Sky: 2.").waitFor({ state: "attached" });

	await visit(second, "/cart");
	await second.getByRole("button", { name: "Remove Enamel Mug, Sage" }).click();
	await second.locator("[data-announcement]").getByText("Enamel Mug, Sage removed.").waitFor({ state: "attached" });
	await first.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
	await first.locator(`#line-${MUG}`).waitFor({ state: "detached" });
	await counted(first, 2);
}

/** A removal that is not sent is taken back. */
async function removesOffline(open) {
	const context = await open();
	const page = await context.newPage();
	await addToCart(page, MUG, 1);
	await visit(page, "/cart");
	await context.setOffline(true);
	await page.getByRole("button", { name: "Remove Enamel Mug, Sage" }).click();
	await page.locator("[data-status]").getByText("No connection. Please try again.").waitFor();
	await counted(page, 1);
	assert.equal(await focusedLabel(page), "Remove Enamel Mug, Sage");
	await context.setOffline(false);
	await page.keyboard.press("Enter");
	await page.getByText("Your cart is empty.").waitFor();
}

/** The second click does not ask for the account that the first one creates. */
async function signsUpTwice(open) {
	const page = await (await open()).newPage();
	await visit(page, "/signup?next=/account");
	for (const [name, value] of Object.entries({ name: "Ada", email: "double@example.org", password: PASSWORD })) {
		await page.locator(`input[name=${name}]`).fill(value);
	}
	await page.getByRole("button", { name: "Create account" }).dblclick();
	await page.waitForURL("/account");
	assert.equal(await heading(page), "Hello, Ada");
}

await inBrowser(async (open) => {
	await addsWithoutDrawer(open);
	await usesTwoTabs(open);
	await removesOffline(open);
	await signsUpTwice(open);
}, [/ERR_FAILED/, /ERR_INTERNET_DISCONNECTED/]);
