// Each page, on a phone and on a desk, by day and by night: axe-core finds nothing, nothing moves while it loads, nothing is wider
// than the screen.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, visit } from "./support.mjs";

const PAGES = [
	["/", 200],
	["/categories/kitchen", 200],
	["/products/enamel-mug-sage", 200],
	["/products/knitted-animal-badger", 200],
	["/cart", 200],
	["/login", 200],
	["/signup", 200],
	["/checkout", 200],
	["/nowhere", 404],
];

await inBrowser(async (open, errors) => {
	for (const [width, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
		for (const colorScheme of ["light", "dark"]) {
			const context = await open({ viewport, colorScheme });
			const page = await context.newPage();
			for (const [path, status] of PAGES) {
				const what = `${path} (${width}, ${colorScheme})`;
				assert.equal(await visit(page, path), status, what);
				// The browser itself notes a page that is not there.
				if (status !== 200) errors.length = 0;
				assert.ok((await layoutShift(page)) < 0.01, `${what} does not move: ${await layoutShift(page)}`);
				const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
				assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);
				await accessible(page, what);
			}
			await context.close();
		}
	}
});
