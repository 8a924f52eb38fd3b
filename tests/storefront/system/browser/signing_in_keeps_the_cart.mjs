// Signing in keeps a guest's cart and changes the token. A wrong password keeps the typed email.

import { assert, inBrowser, visit } from "./support.mjs";
import { addToCart, counted, heading, MUG, signIn, signUp } from "./shop.mjs";

const EMAIL = "ada@example.org";

await inBrowser(async (open) => {
	const context = await open();
	const page = await context.newPage();
	await signUp(page, EMAIL, "Ada");
	await visit(page, "/account");
	assert.match(await heading(page), /Ada/);
	await page.getByRole("button", { name: "Sign out", exact: true }).click();
	await page.waitForURL("/");

	await addToCart(page, MUG, 1);
	const guest = (await context.cookies()).find(({ name }) => name === "__Host-session");
	assert.ok(guest.httpOnly && guest.secure && guest.sameSite === "Lax", JSON.stringify(guest));

	await visit(page, "/login");
	await page.locator("input[name=email]").fill(EMAIL);
	await page.locator("input[name=password]").fill("not the password at all");
	await page.locator("main form button[type=submit]").first().click();
	await page.locator("main .problem").first().waitFor();
	assert.equal(await page.locator("input[name=email]").inputValue(), EMAIL);

	await signIn(page, EMAIL);
	await counted(page, 1);
	const user = (await context.cookies()).find(({ name }) => name === "__Host-session");
	assert.notEqual(user.value, guest.value, "signing in issues a new token");
	await visit(page, "/cart");
	await page.getByRole("link", { name: "Enamel Mug, Sage" }).first().waitFor();
}, [/status of 4(03|22)/]);
