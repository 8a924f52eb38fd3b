const MATERIALS = ["Oak", "Steel", "Linen", "Ceramic", "Wool"];
const THINGS = ["Mug", "Lamp", "Chair", "Basket", "Clock", "Kettle", "Shelf", "Apron", "Bowl", "Stool"];

export const COLLECTIONS = ["kitchen", "living", "workshop"];

/** 50 products, such as oak-mug. */
export function seedProducts() {
	const names = THINGS.flatMap((thing) => MATERIALS.map((material) => [material, thing]));
	return names.map(([material, thing], index) => ({
		handle: `${material}-${thing}`.toLowerCase(),
		title: `${material} ${thing}`,
		collection: COLLECTIONS[index % COLLECTIONS.length],
		price: 900 + 250 * index,
		image: `/images/${thing.toLowerCase()}.png`,
		description: `A ${thing.toLowerCase()} of ${material.toLowerCase()}, made by hand.`,
	}));
}
