// Shared by the browser scenarios. Environment: SHOP (the shop's URL), SERVICE_KEY, CHROMIUM (path of the browser).

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export { assert };
export const SHOP = process.env.SHOP;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Viewports in CSS pixels. */
export const PHONE = { width: 390, height: 844 };
export const DESKTOP = { width: 1280, height: 800 };

/**
 * Runs `scenario` with a function that opens a browser context: one visitor with own cookies and storage. Fails if a
 * page had an error: an exception, a console message, a violation of the content security policy, or a request to
 * another host. The browser also logs responses with an error status; `expected` lists those that the scenario causes.
 */
export async function inBrowser(scenario, expected = []) {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: [
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
		],
	});
	const errors = [];
	const open = async (options = {}) => {
		const context = await browser.newContext({ baseURL: SHOP, locale: "en-IE", viewport: DESKTOP, ...options });
		context.setDefaultTimeout(30_000);
		context.on("console", (message) => {
			const { url } = message.location();
			if (!["error", "warning"].includes(message.type()) || expected.some((text) => text.test(message.text()))) return;
			errors.push(`${message.type()}: ${message.text()} (${url})`);
		});
		context.on("weberror", (error) => errors.push(`exception: ${error.error()}`));
		context.on("request", (request) => {
			if (new URL(request.url()).origin !== SHOP) errors.push(`a request to another host: ${request.url()}`);
		});
		return context;
	};
	try {
		await scenario(open);
		assert.deepEqual(errors, [], "no page had an error");
	} finally {
		await browser.close();
	}
}

/** Calls the service's part of the API. */
export async function service(method, path, body) {
	const answer = await fetch(`${SHOP}/_edge/v1${path}`, {
		method,
		headers: { authorization: `Bearer ${process.env.SERVICE_KEY}`, "content-type": "application/json" },
		body: body && JSON.stringify(body),
	});
	const text = await answer.text();
	assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
	return text && JSON.parse(text);
}

/** Runs a statement on the shop's database and returns the rows. */
export async function sql(statement) {
	const answer = await fetch(`${SHOP}/test/sql`, { method: "POST", body: statement });
	assert.ok(answer.ok, statement);
	return answer.json();
}

/** Fails if axe-core finds a violation of WCAG 2.2 A or AA, or of its best practices. */
export async function accessible(page, what) {
	// Evaluated, because the page's content security policy blocks a script element.
	await page.evaluate(AXE);
	const { violations, passes } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
	const report = violations.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.map((node) => `    ${node.html}\n      ${node.failureSummary}`).join("\n")}`);
	assert.deepEqual(report, [], `${what} is accessible`);
	return passes.length;
}

/** Cumulative Layout Shift of the page so far. Call it after the page has loaded. */
export function layoutShift(page) {
	return page.evaluate(
		() =>
			new Promise((resolve) => {
				let sum = 0;
				new PerformanceObserver((list) => {
					for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
				}).observe({ type: "layout-shift", buffered: true });
				setTimeout(() => resolve(sum), 100);
			}),
	);
}

/** Opens a page and waits until its scripts have sent all requests. */
export async function visit(page, path) {
	const answer = await page.goto(path, { waitUntil: "networkidle" });
	return answer.status();
}
