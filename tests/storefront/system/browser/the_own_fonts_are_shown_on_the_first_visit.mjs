// The fonts of the shop, with an empty browser cache: text is readable before they arrive, then they replace the fallbacks,
// and nothing moves. On a phone and a desktop.

import { assert, DESKTOP, inBrowser, layoutShift, PHONE } from "./support.mjs";

const PATHS = ["/", "/categories/kitchen", "/products/enamel-mug-sage", "/search?q=mug", "/flash/cast-iron-casserole-sage", "/cart", "/login"];
const MAX_SHIFT = 0.01;

/** Whether the browser paints the heading and a paragraph with fonts of the page, not of the machine. */
async function ownFonts(page) {
	const browser = await page.context().newCDPSession(page);
	await browser.send("DOM.enable");
	await browser.send("CSS.enable");
	const { root } = await browser.send("DOM.getDocument");
	const areOwn = await Promise.all(["h1", "footer p"].map(async (selector) => {
		const { nodeId } = await browser.send("DOM.querySelector", { nodeId: root.nodeId, selector });
		const { fonts } = await browser.send("CSS.getPlatformFontsForNode", { nodeId });
		return fonts.length > 0 && fonts.every(({ isCustomFont }) => isCustomFont);
	}));
	await browser.detach();
	return areOwn;
}

async function eventuallyOwn(page, what) {
	const end = Date.now() + 20_000;
	for (let fonts = []; fonts.length === 0 || fonts.includes(false); fonts = await ownFonts(page)) {
		assert.ok(Date.now() < end, `${what}: the own fonts are shown: ${fonts}`);
	}
}

await inBrowser(async (open) => {
	for (const [width, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
		for (const path of PATHS) {
			const what = `${path} (${width})`;
			// A new context has an empty cache.
			const context = await open({ viewport });
			let release;
			const released = new Promise((resolve) => { release = resolve; });
			await context.route("**/*.woff2", async (route) => {
				await released;
				await route.continue();
			});
			const page = await context.newPage();
			await page.goto(path, { waitUntil: "domcontentloaded" });
			await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
			assert.deepEqual(await ownFonts(page), [false, false], `${what}: the fallbacks are shown first`);
			release();
			await eventuallyOwn(page, what);
			await page.waitForLoadState("networkidle");
			const shift = await layoutShift(page);
			assert.ok(shift < MAX_SHIFT, `${what} has no layout shift: ${shift}`);
			await context.close();
		}
	}
}, [/status of 404/]);
