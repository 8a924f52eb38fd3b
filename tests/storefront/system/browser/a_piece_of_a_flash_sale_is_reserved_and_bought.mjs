// A flash sale with two people: one without an account sees a piece go, takes one too, gives it back, and the other one buys theirs. On a phone,
// by day and by night, with axe-core at each step.

import { accessible, assert, inBrowser, layoutShift, PHONE, service, visit } from "./support.mjs";

const RUNNING = "/flash/cast-iron-casserole-sage";
const UPCOMING = "/flash/carbon-steel-frying-pan-24-cm";

await inBrowser(async (open) => {
	for (const path of [RUNNING, UPCOMING]) {
		await service("PUT", `/rows/${path.split("/").pop()}/schedule`, { every: 5 });
	}
	const ada = await (await open({ viewport: PHONE })).newPage();
	const bob = await (await open({ colorScheme: "dark" })).newPage();

	await visit(bob, UPCOMING);
	await bob.getByText(/^Starts in/).waitFor();
	assert.equal(await bob.getByRole("button", { name: "Reserve one" }).isVisible(), false);
	await accessible(bob, "a sale that is to come");
	await visit(bob, RUNNING);
	await bob.getByText("25 of 25 left").waitFor();
	assert.ok((await layoutShift(bob)) < 0.05, `the sale does not jump: ${await layoutShift(bob)}`);
	await accessible(bob, "a sale that runs");

	await visit(ada, RUNNING);
	await ada.getByRole("button", { name: "Reserve one" }).click();
	const signIn = ada.getByRole("link", { name: "Sign in to reserve" });
	await signIn.waitFor();
	await accessible(ada, "who must sign in first");
	await signIn.click();
	await ada.getByRole("link", { name: "Open an account" }).click();
	await ada.getByLabel("Name").fill("Ada Lovelace");
	await ada.getByLabel("Mail address").fill("ada@example.org");
	await ada.getByLabel("Password").fill("a long and quiet engine");
	await ada.locator("main form button").click();
	await ada.waitForURL(`**${RUNNING}`);

	await ada.getByRole("button", { name: "Reserve one" }).click();
	await ada.getByText(/^One piece is held for you for another [12]:\d\d/).waitFor();
	await accessible(ada, "a piece is held");
	await bob.getByText("24 of 25 left").waitFor();
	await ada.getByRole("button", { name: "Give it back" }).click();
	await bob.getByText("25 of 25 left").waitFor();
	await ada.getByRole("button", { name: "Reserve one" }).click();

	await ada.getByRole("link", { name: "Check out" }).click();
	await ada.getByText(/^Your piece is held for another [12]:\d\d/).waitFor();
	await accessible(ada, "the checkout of a piece");
	assert.equal(await ada.getByLabel("Mail address").inputValue(), "ada@example.org");
	await ada.getByLabel("Address", { exact: true }).fill("12 St James's Square\nLondon");
	await ada.getByRole("button", { name: "Buy for €79.00" }).click();
	await ada.getByRole("heading", { name: "Thank you, Ada Lovelace" }).waitFor();
}, [/status of 403/]);
