-- Flash sales: a limited number of pieces at a sale price, one per user. A row with `sale_pieces` is in a flash sale.
-- Only the flash sale's own checkout sells at that price. Times are in Unix seconds.

-- The number of pieces in the flash sale. NULL for an ordinary sale or no sale.
ALTER TABLE inventory ADD COLUMN sale_pieces INTEGER CHECK (sale_pieces IS NULL OR (sale_pieces > 0 AND sale_starts_at IS NOT NULL));
-- The number of pieces sold. The constraint prevents overselling: it holds for any number of concurrent buyers.
ALTER TABLE inventory ADD COLUMN sale_sold INTEGER NOT NULL DEFAULT 0 CHECK (sale_sold BETWEEN 0 AND coalesce(sale_pieces, 0));

-- Purchases by user and sale.
CREATE TABLE flash_purchases (
    item TEXT NOT NULL REFERENCES inventory (id),
    sale_starts_at INTEGER NOT NULL,
    user TEXT NOT NULL,
    order_id TEXT NOT NULL UNIQUE REFERENCES orders (id),
    -- One piece per user and sale.
    PRIMARY KEY (item, sale_starts_at, user)
) STRICT, WITHOUT ROWID;

-- One sale starts when this migration runs, and one starts an hour later, so that a new shop shows both states.
UPDATE inventory SET
    stock = 40, sale_price_cents = 7900, sale_pieces = 25,
    sale_starts_at = unixepoch(), sale_ends_at = unixepoch() + 7 * 86400
WHERE id = 'cast-iron-casserole-sage';
UPDATE inventory SET
    stock = 60, sale_price_cents = 1900, sale_pieces = 50,
    sale_starts_at = unixepoch() + 3600, sale_ends_at = unixepoch() + 8 * 86400
WHERE id = 'carbon-steel-frying-pan-24-cm';
