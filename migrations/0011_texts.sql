-- The text of a variant that works differently from the rest of its product line.
UPDATE products SET description = 'Burns twigs and cones, and boils a litre in nine minutes. Needs no fuel from a shop.',
    details = '{"Weight": "420 g", "Boils": "1 l in 9 min"}' WHERE id = 'camp-stove-wood';
