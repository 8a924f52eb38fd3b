-- Pictures of variants that look different from the rest of their product line.
UPDATE products SET picture = 'bird-feeder-post' WHERE id = 'bird-feeder-on-a-post';
UPDATE products SET picture = 'stove-wood' WHERE id = 'camp-stove-wood';
