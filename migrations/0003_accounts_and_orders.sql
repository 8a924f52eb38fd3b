-- Who buys at the demo shop, and what they bought. Times are Unix seconds.

CREATE TABLE users (
    -- The mail address in lower case; what the edge knows a session's user by.
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- The password's hash as a PHC string: it names its algorithm and costs, so that both can change.
    password TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE orders (
    -- 128 random bits that were drawn with the form: the same form sent twice is one order.
    id TEXT PRIMARY KEY,
    -- NULL: a guest's. Not a reference to users: a session may be begun by another service of the shop.
    user TEXT,
    mail TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    -- What the buyer was shown and agreed to.
    total_cents INTEGER NOT NULL CHECK (total_cents > 0),
    currency TEXT NOT NULL,
    placed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX orders_by_user ON orders (user, placed_at) WHERE user IS NOT NULL;

CREATE TABLE order_lines (
    order_id TEXT NOT NULL REFERENCES orders (id),
    item TEXT NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    -- Of one piece, as it was when it was bought.
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    PRIMARY KEY (order_id, item)
) STRICT, WITHOUT ROWID;
