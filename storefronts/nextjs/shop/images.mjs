// Draws one picture for each kind of product into public/images: PNG files of 480 by 480 pixels.
import { mkdirSync, writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const SIZE = 480;
const THINGS = ["mug", "lamp", "chair", "basket", "clock", "kettle", "shelf", "apron", "bowl", "stool"];

function chunk(type, data) {
	const body = Buffer.concat([Buffer.from(type), data]);
	const frame = Buffer.alloc(8);
	frame.writeUInt32BE(data.length, 0);
	frame.writeUInt32BE(crc32(body), 4);
	return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

mkdirSync("public/images", { recursive: true });
THINGS.forEach((thing, number) => {
	const rows = Buffer.alloc(SIZE * (1 + 3 * SIZE));
	for (let y = 0; y < SIZE; y += 1) {
		for (let x = 0; x < SIZE; x += 1) {
			const inside = Math.hypot(x - SIZE / 2, y - SIZE / 2) < 60 + 14 * number;
			const colour = inside ? [40 + 20 * number, 90 + ((x * y) >> 11) % 60, 200 - 18 * number] : [236, 232, 224];
			colour.forEach((value, index) => { rows[y * (1 + 3 * SIZE) + 1 + 3 * x + index] = value; });
		}
	}
	const head = Buffer.alloc(13);
	head.writeUInt32BE(SIZE, 0);
	head.writeUInt32BE(SIZE, 4);
	head.set([8, 2], 8);
	const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
	const parts = [chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
	writeFileSync(`public/images/${thing}.png`, Buffer.concat([signature, ...parts]));
});
