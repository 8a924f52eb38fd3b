// Measures a page with Lighthouse (mobile) and writes the report as JSON: `node lighthouse.mjs URL FILE`. Environment:
// CHROMIUM (path of the browser), SERVICE_KEY (to unlock the dashboard; empty for other pages), and a PATH with the
// program `lighthouse`, whose package and dependencies the script uses.

import { existsSync, realpathSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";

const program = process.env.PATH.split(delimiter).map((folder) => join(folder, "lighthouse")).find(existsSync);
const packages = createRequire(realpathSync(program));
const load = async (name) => (await import(pathToFileURL(packages.resolve(name)))).default;
const [lighthouse, puppeteer] = [await load("lighthouse"), await load("puppeteer-core")];

const [url, file] = process.argv.slice(2);
const browser = await puppeteer.launch({
	executablePath: process.env.CHROMIUM,
	args: [
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync",
	],
});
try {
	const page = await browser.newPage();
	if (process.env.SERVICE_KEY) {
		await page.goto(url);
		await page.type("#key", process.env.SERVICE_KEY);
		await page.keyboard.press("Enter");
		await page.waitForSelector("[data-dashboard]:not([hidden])");
		// The tab keeps the key. The measured load must not find the files that this load has cached.
		const session = await page.createCDPSession();
		await session.send("Network.clearBrowserCache");
		await session.detach();
	}
	const { lhr } = await lighthouse(url, { output: "json", logLevel: "error", disableStorageReset: true }, undefined, page);
	await writeFile(file, JSON.stringify(lhr));
} finally {
	await browser.close();
}
