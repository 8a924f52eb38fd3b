// Each page on a phone and a desktop, in light and dark: no axe-core violation, no layout shift, no horizontal
// scrolling, and no script that is loaded twice.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, visit } from "./support.mjs";
import { addToCart, MUG, signUp } from "./shop.mjs";

/** Pages of a guest: path and status. */
const GUEST_PAGES = [
	["/", 200],
	["/categories/kitchen", 200],
	["/products/enamel-mug-sage", 200],
	["/products/knitted-animal-badger", 200],
	["/flash/cast-iron-casserole-sage", 200],
	["/flash/carbon-steel-frying-pan-24-cm", 200],
	["/cart", 200],
	["/checkout", 200],
	["/login", 200],
	["/signup", 200],
	["/reset", 200],
	["/nowhere", 404],
	["/_edge/", 200],
];
/** Pages of a signed-in visitor with an item in the cart. */
const CUSTOMER_PAGES = [
	["/", 200],
	["/products/enamel-mug-sage", 200],
	["/cart", 200],
	["/checkout", 200],
	["/account", 200],
];

await inBrowser(async (open) => {
	for (const [width, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
		for (const colorScheme of ["light", "dark"]) {
			const context = await open({ viewport, colorScheme });
			const page = await context.newPage();
			const check = async ([path, status]) => {
				const what = `${path} (${width}, ${colorScheme})`;
				assert.equal(await visit(page, path), status, what);
				assert.ok((await layoutShift(page)) < 0.01, `${what} has no layout shift: ${await layoutShift(page)}`);
				const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
				assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);
				const scripts = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.includes(".js?")));
				assert.equal(scripts.length, new Set(scripts).size, `${what} loads each script once: ${scripts}`);
				await accessible(page, what);
			};
			for (const each of GUEST_PAGES) await check(each);
			await signUp(page, `${width}-${colorScheme}@example.org`);
			await addToCart(page, MUG, 1);
			for (const each of CUSTOMER_PAGES) await check(each);
			await context.close();
		}
	}
}, [/status of 404/]);
