-- Catalogue of the demo shop. An inventory row has its product's id; the row cache keeps it in Redis as `inv:{id}`.

CREATE TABLE categories (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    blurb TEXT NOT NULL,
    -- Order on the home page.
    position INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TABLE products (
    -- The id in the URL /products/{id}.
    id TEXT PRIMARY KEY,
    -- The product line: a product's other colours and sizes have the same line.
    line TEXT NOT NULL,
    category TEXT NOT NULL REFERENCES categories (id),
    name TEXT NOT NULL,
    -- The list price. The current price is in the inventory.
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    currency TEXT NOT NULL DEFAULT 'EUR',
    description TEXT NOT NULL,
    -- A JSON object, label → text, in display order.
    details TEXT NOT NULL CHECK (json_valid(details))
) STRICT;

CREATE INDEX products_by_category ON products (category, name);
CREATE INDEX products_by_line ON products (line, price_cents);

-- Data that changes while a page is cached. Times are in Unix seconds.
CREATE TABLE inventory (
    id TEXT PRIMARY KEY REFERENCES products (id),
    stock INTEGER NOT NULL CHECK (stock >= 0),
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    -- The sale. Either all three columns are set, or none.
    sale_price_cents INTEGER CHECK (sale_price_cents > 0),
    sale_starts_at INTEGER,
    sale_ends_at INTEGER,
    updated_at INTEGER NOT NULL,
    CHECK ((sale_price_cents IS NULL) = (sale_starts_at IS NULL) AND (sale_starts_at IS NULL) = (sale_ends_at IS NULL))
) STRICT;

CREATE INDEX inventory_on_sale ON inventory (sale_ends_at) WHERE sale_ends_at IS NOT NULL;
