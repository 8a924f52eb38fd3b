// An operator opens the dashboard with the service key, sees visitor activity, latencies and errors of an hour, a day and
// a week, and looks up whether a page is cached. On a phone and a desktop, in light and dark.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, service, SHOP, visit } from "./support.mjs";

const MUG = "/products/enamel-mug-sage";
const text = (page, selector) => page.locator(selector).first().innerText();

/** Waits until the element's text matches. */
const says = (page, selector, pattern) => page.locator(selector).filter({ hasText: pattern }).first().waitFor();

/** The parameters of the page's URL. The page says them itself, because `page.url()` hears of `replaceState` late. */
const parameters = async (page) => new URLSearchParams(await page.evaluate(() => location.search));

const DAY = 86_400_000;
const onDay = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric" });

/** Waits until the charts begin so many days ago. An interval may begin up to two hours later. */
async function beginsDaysAgo(page, days) {
	const begin = Date.now() - days * DAY;
	const expected = [begin, begin + DAY / 12].map((moment) => `status, ${onDay.format(moment)}`);
	const end = Date.now() + 30_000;
	for (let label = ""; !expected.some((text) => label.includes(text)); ) {
		assert.ok(Date.now() < end, `the charts begin ${days} days ago: ${label}`);
		label = await page.locator("[data-chart=responses] .plot").getAttribute("aria-label");
	}
}

/** Waits until a chart shows values: the newest bucket of a chart counts when it is over, and the page polls every 15 s. */
async function hasData(figure, chart) {
	const end = Date.now() + 60_000;
	for (let label = "no data yet"; /no data yet/i.test(label); ) {
		assert.ok(Date.now() < end, `${chart}: ${label}`);
		label = await figure.locator(".plot").getAttribute("aria-label");
	}
}

/** Waits until the charts and tables show the traffic before this scenario. */
async function showsLatenciesAndErrors(page) {
	await says(page, "[data-errors]", "Storefront");
	await says(page, "[data-latest-errors]", "the origin answered with this status");
	for (const chart of ["latency-hit", "latency-render", "latency-redis", "latency-origin", "errors"]) {
		const figure = page.locator(`[data-chart=${chart}]`);
		assert.notEqual(await figure.locator("canvas").count(), 0, chart);
		await hasData(figure, chart);
	}
	assert.equal(await page.locator("[data-chart=latency-home]").isVisible(), false);
}

/** Selects the second half of a chart with the pointer. It is part of the URL until the whole range is shown again. */
async function selectsPart(page) {
	const plot = page.locator("[data-chart=responses] .u-over");
	await plot.scrollIntoViewIfNeeded();
	const { x, y, width, height } = await plot.boundingBox();
	await page.mouse.move(x + width / 2, y + height / 2);
	await page.mouse.down();
	await page.mouse.move(x + width - 5, y + height / 2, { steps: 3 });
	await page.mouse.up();
	const selected = await parameters(page);
	const part = ["from", "to"].map((name) => Number(selected.get(name)));
	assert.ok(part[1] - part[0] > 9 * 3600 && part[1] - part[0] < 15 * 3600, `half a day: ${part}`);
	await page.getByRole("button", { name: "Show the whole range" }).click();
	assert.equal((await parameters(page)).toString(), "range=24h");
}

await inBrowser(async (open) => {
	// The item gets a rank when its first views are written; then its page is cached.
	for (let hits = 0; hits < 10; ) if (/; hit/.test((await fetch(SHOP + MUG)).headers.get("cache-status"))) hits += 1;

	assert.equal((await fetch(`${SHOP}/products/none`)).status, 404);
	// The entry with these requests is written after a later response.
	for (let errors = []; errors.length === 0; ) ({ errors } = await service("GET", "/traffic"));

	for (const [width, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
		for (const colorScheme of ["light", "dark"]) {
			const what = `the dashboard (${width}, ${colorScheme})`;
			const context = await open({ viewport, colorScheme });
			const page = await context.newPage();
			assert.equal(await visit(page, "/_edge"), 200);
			await accessible(page, `${what}, locked`);

			await page.getByLabel("Service key").fill("a wrong key");
			await page.keyboard.press("Enter");
			await says(page, "#key-problem", "contains a space");
			await page.getByLabel("Service key").fill("a-wrong-key");
			await page.keyboard.press("Enter");
			await says(page, "#key-problem", "service key is incorrect");
			await page.getByLabel("Service key").fill(process.env.SERVICE_KEY);
			await page.keyboard.press("Enter");
			await says(page, "[data-items]", "enamel-mug-sage");
			await says(page, "[data-figure=hits]", "%");
			assert.notEqual(await page.locator("[data-chart=responses] canvas").count(), 0);
			assert.match(await page.locator("[data-chart=responses] .plot").getAttribute("aria-label"), /Hit: /);
			await showsLatenciesAndErrors(page);
			assert.equal(await text(page, "[data-empty=rows]"), "No rows are scheduled. Schedule a row to show its stock and its sale times without a query for each visitor.");

			await page.getByLabel("Page URL or path").fill(MUG);
			await page.keyboard.press("Enter");
			await says(page, "[data-verdict]", "Cached.");
			await page.getByLabel("Page URL or path").fill("/cart");
			await page.keyboard.press("Enter");
			await says(page, "[data-verdict]", "Not cached.");
			await accessible(page, what);

			for (const [range, name, days] of [["7 days", "7d", 7], ["24 hours", "24h", 1]]) {
				await page.getByLabel("Time range").selectOption(range);
				assert.equal((await parameters(page)).get("range"), name);
				await beginsDaysAgo(page, days);
			}

			await selectsPart(page);

			// A reload keeps the key and the range, and nothing moves while the dashboard loads.
			await page.reload({ waitUntil: "networkidle" });
			assert.equal(await page.getByLabel("Time range").inputValue(), "24h");
			await beginsDaysAgo(page, 1);
			await showsLatenciesAndErrors(page);
			await says(page, "[data-items]", "enamel-mug-sage");
			assert.ok((await layoutShift(page)) < 0.02, `${what} has no layout shift: ${await layoutShift(page)}`);
			const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
			assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);

			await page.getByRole("button", { name: "Forget key" }).click();
			await page.getByLabel("Service key").waitFor();
			assert.equal(await page.evaluate(() => sessionStorage.length), 0);
			await context.close();
		}
	}
}, [/status of 401/]);
