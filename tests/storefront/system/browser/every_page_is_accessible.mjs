// Each page, on a phone and on a desk, by day and by night: axe-core finds nothing, nothing moves while it loads, nothing is wider
// than the screen.

import { accessible, assert, DESKTOP, inBrowser, layoutShift, PHONE, visit } from "./support.mjs";
import { addToCart, MUG, signUp } from "./shop.mjs";

/** Path and status. */
const OF_A_GUEST = [
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
	["/nowhere", 404],
	["/_edge/", 200],
];
/** Of somebody with something in the cart and an account. */
const OF_A_CUSTOMER = [
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
			const look = async ([path, status]) => {
				const what = `${path} (${width}, ${colorScheme})`;
				assert.equal(await visit(page, path), status, what);
				assert.ok((await layoutShift(page)) < 0.01, `${what} does not move: ${await layoutShift(page)}`);
				const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
				assert.ok(wider <= 0, `${what} is ${wider} px wider than the screen`);
				await accessible(page, what);
			};
			for (const each of OF_A_GUEST) await look(each);
			await signUp(page, `${width}-${colorScheme}@example.org`);
			await addToCart(page, MUG, 1);
			for (const each of OF_A_CUSTOMER) await look(each);
			await context.close();
		}
	}
}, [/status of 404/]);
