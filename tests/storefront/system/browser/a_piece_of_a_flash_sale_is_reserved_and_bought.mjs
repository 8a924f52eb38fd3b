// A flash sale with two visitors. Ada, on a phone, signs up, reserves a piece, cancels, reserves again and buys it.
// Bob, on a dark desktop, sees the stock change. axe-core checks each step.

import { accessible, assert, inBrowser, layoutShift, PHONE, service, visit } from "./support.mjs";

const RUNNING = "/flash/cast-iron-casserole-sage";
const UPCOMING = "/flash/carbon-steel-frying-pan-24-cm";

/** Fails if the space for messages is empty, or higher than its text. */
async function hasNoGap(page, what) {
	const gap = await page.locator(".flash-messages").evaluate((place) => {
		const shown = [...place.children].filter((line) => line.textContent && line.className !== "visually-hidden");
		return place.offsetHeight - shown.reduce((sum, line) => sum + line.offsetHeight, 0);
	});
	assert.ok(gap < 30, `${what}: a gap of ${gap} px`);
}

/** Holds the answer to the page's next poll of the sale. Returns a function that delivers the answer. */
async function holdPoll(page) {
	const { promise: delivered, resolve: deliver } = Promise.withResolvers();
	const held = new Promise((resolve) => {
		page.route(`**/_edge/v1${RUNNING}`, async (route) => {
			const response = await route.fetch();
			resolve();
			await delivered;
			await route.fulfill({ response });
		}, { times: 1 });
	});
	await held;
	return deliver;
}

await inBrowser(async (open) => {
	for (const path of [RUNNING, UPCOMING]) {
		await service("PUT", `/rows/${path.split("/").pop()}/schedule`, { every: 5 });
	}
	const ada = await (await open({ viewport: PHONE })).newPage();
	const bob = await (await open({ colorScheme: "dark" })).newPage();

	await visit(bob, UPCOMING);
	await bob.getByText(/^Starts in/).waitFor();
	assert.equal(await bob.getByRole("button", { name: "Reserve now" }).isVisible(), false);
	await accessible(bob, "an upcoming sale");
	await hasNoGap(bob, "an upcoming sale");
	// Something to do before the start.
	const buttons = (page) => page.locator("main .flash .actions > :visible").allInnerTexts();
	assert.deepEqual(await buttons(bob), ["Sign in to reserve", "Add to calendar"]);
	const [calendar] = await Promise.all([bob.waitForEvent("download"), bob.getByRole("link", { name: "Add to calendar" }).click()]);
	assert.match(calendar.suggestedFilename(), /\.ics$/);
	await visit(bob, RUNNING);
	await bob.getByText("25 of 25 left").waitFor();
	assert.ok((await layoutShift(bob)) < 0.05, `the sale has no layout shift: ${await layoutShift(bob)}`);
	await accessible(bob, "a live sale");

	await visit(ada, RUNNING);
	const signIn = ada.getByRole("link", { name: "Sign in to reserve" });
	await signIn.waitFor();
	assert.deepEqual(await buttons(ada), ["Sign in to reserve"], "signing in is the only button");
	await accessible(ada, "a sale that asks to sign in");
	await hasNoGap(ada, "a sale that asks to sign in");
	await signIn.click();
	await ada.getByRole("link", { name: "Create account" }).click();
	await ada.getByLabel("Full name").fill("Ada Lovelace");
	await ada.getByLabel("Email").fill("ada@example.org");
	await ada.getByLabel("Password", { exact: true }).fill("a long and quiet engine");
	await ada.locator("main form button[type=submit]").click();
	await ada.waitForURL(`**${RUNNING}`);

	await ada.getByRole("button", { name: "Reserve now" }).waitFor();
	const deliverPoll = await holdPoll(ada);
	await ada.getByRole("button", { name: "Reserve now" }).click();
	await ada.getByText(/^Reserved for you for [12]:\d\d/).waitFor();
	// The held poll read the sale before the reservation. The page polls again when it has that answer.
	const latePoll = ada.waitForResponse(`**/_edge/v1${RUNNING}`);
	deliverPoll();
	await (await latePoll).finished();
	const deliverNextPoll = await holdPoll(ada);
	assert.ok(await ada.getByRole("button", { name: "Cancel reservation" }).isVisible(), "a late poll does not hide the reservation");
	deliverNextPoll();
	await accessible(ada, "a sale with a reservation");
	await hasNoGap(ada, "a sale with a reservation");
	await bob.getByText("24 of 25 left").waitFor();
	await bob.getByText("24 available").waitFor();
	await ada.getByRole("button", { name: "Cancel reservation" }).click();
	await bob.getByText("25 of 25 left").waitFor();
	await ada.getByRole("button", { name: "Reserve now" }).click();

	await ada.getByRole("link", { name: "Checkout" }).click();
	await ada.getByText(/^Reserved for you for [12]:\d\d/).waitFor();
	await accessible(ada, "the checkout of a reservation");
	assert.match(await ada.locator(".order-summary .line .price").innerText(), /^€79\.00\s.*€129\.00$/s, "the price that is paid");
	assert.equal(await ada.getByLabel("Email").inputValue(), "ada@example.org");
	await ada.getByLabel("Street and number").fill("12 St James's Square");
	for (const [label, value] of [["Postal code", "SW1"], ["City", "London"], ["Country", "UK"]]) await ada.getByLabel(label).fill(value);
	await ada.getByRole("button", { name: "Place order · €79.00" }).click();
	await ada.getByRole("heading", { name: "Thank you, Ada Lovelace" }).waitFor();
	await visit(ada, RUNNING);
	await ada.getByRole("link", { name: "View your orders" }).waitFor();
	await accessible(ada, "a sale in which the visitor has bought");
	await hasNoGap(ada, "a sale in which the visitor has bought");
}, [/status of 403/]);
