-- Flash sales: limited pieces at the sale's price, one for each user. A row whose `sale_pieces` is set is one; only its own checkout
-- sells at that price. Times are Unix seconds.

-- How many pieces there are in the sale at `sale_starts_at`. NULL: an ordinary sale, or none.
ALTER TABLE inventory ADD COLUMN sale_pieces INTEGER CHECK (sale_pieces IS NULL OR (sale_pieces > 0 AND sale_starts_at IS NOT NULL));
-- How many of them are sold. However many buy at once, and whatever any cache believes: never more than there are.
ALTER TABLE inventory ADD COLUMN sale_sold INTEGER NOT NULL DEFAULT 0 CHECK (sale_sold BETWEEN 0 AND coalesce(sale_pieces, 0));

-- Who has bought in which sale.
CREATE TABLE flash_purchases (
    item TEXT NOT NULL REFERENCES inventory (id),
    sale_starts_at INTEGER NOT NULL,
    user TEXT NOT NULL,
    order_id TEXT NOT NULL UNIQUE REFERENCES orders (id),
    -- One for each user.
    PRIMARY KEY (item, sale_starts_at, user)
) STRICT, WITHOUT ROWID;

-- One runs from the day the shop is set up, and one begins an hour later: both can be seen by who has just arrived.
UPDATE inventory SET
    stock = 40, sale_price_cents = 7900, sale_pieces = 25,
    sale_starts_at = unixepoch(), sale_ends_at = unixepoch() + 7 * 86400
WHERE id = 'cast-iron-casserole-sage';
UPDATE inventory SET
    stock = 60, sale_price_cents = 1900, sale_pieces = 50,
    sale_starts_at = unixepoch() + 3600, sale_ends_at = unixepoch() + 8 * 86400
WHERE id = 'carbon-steel-frying-pan-24-cm';
