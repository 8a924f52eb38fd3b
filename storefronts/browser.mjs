// Shared by the flows of the storefronts. Environment: SHOP (the address of edgefront), CHROMIUM (path of the browser), SCREENSHOTS (a folder
// for one picture of each step; optional).

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export { assert };
export const SHOP = process.env.SHOP;

const ARGUMENTS = [
	"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	"--disable-background-networking", "--disable-component-update", "--disable-sync",
	// Storefronts load fonts and scripts from other hosts. Playwright's own routes would switch the browser's cache off.
	"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
];

/**
 * Runs `flow` with two functions. `open()` opens the page of a new visitor, with own cookies. `step(name, page, action)` runs a part of the
 * flow; a failure names it.
 */
export async function inBrowser(flow) {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ARGUMENTS });
	const steps = [];
	const open = async () => {
		const context = await browser.newContext({
			baseURL: SHOP,
			locale: "en-GB",
			viewport: { width: 1280, height: 900 },
			// Headless Chromium names itself. edgefront counts no views of such clients, so their pages never become popular.
			userAgent: `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${browser.version()} Safari/537.36`,
		});
		context.setDefaultTimeout(30_000);
		return context.newPage();
	};
	const step = async (name, page, action) => {
		try {
			await action();
		} catch (error) {
			throw new Error(`${name}, on ${page.url()}: ${error.message}`, { cause: error });
		} finally {
			if (process.env.SCREENSHOTS) {
				await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name.replaceAll(" ", "-")}.png` });
			}
		}
		steps.push(name);
	};
	try {
		await flow(open, step);
		console.log(`${steps.length} steps: ${steps.join(", ")}`);
	} finally {
		await browser.close();
	}
}

/** Opens a page and returns the members of its `Cache-Status` header, such as `hit`. */
export async function visit(page, path) {
	const answer = await page.goto(path);
	assert.ok(answer.ok(), `${path}: ${answer.status()}`);
	return (answer.headers()["cache-status"] ?? "").split(";").map((member) => member.trim());
}

/** Opens a page until it comes from the store: the first views of an item only count. */
export async function visitUntilHit(page, path) {
	let status;
	for (let attempt = 0; attempt < 20; attempt += 1) {
		// A browser that opens the same address again reloads it, and asks for a fresh page.
		await page.goto("about:blank");
		status = await visit(page, path);
		if (status.includes("hit")) return;
		await page.waitForTimeout(300);
	}
	const cookies = (await page.context().cookies()).map(({ name }) => name);
	assert.fail(`${path} never came from the store: ${status.join("; ")}, cookies: ${cookies.join(", ")}`);
}
