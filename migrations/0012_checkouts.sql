-- One order for each checkout: if two tabs check out the same cart at once, the database accepts one order.

-- The number in the browser's cookie, which all tabs share. NULL for flash sales, and for browsers without the cookie.
ALTER TABLE orders ADD COLUMN checkout TEXT;
CREATE UNIQUE INDEX orders_by_checkout ON orders (checkout) WHERE checkout IS NOT NULL;
