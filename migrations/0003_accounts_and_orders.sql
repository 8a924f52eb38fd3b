-- Accounts and orders of the demo shop. Times are in Unix seconds.

CREATE TABLE users (
    -- The email in lower case, which is also the user of a session (`Edge-User`).
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- The password's hash as a PHC string. It contains algorithm and parameters, so that both can change.
    password TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE orders (
    -- 128 random bits, generated with the checkout form: a form that is sent twice places one order.
    id TEXT PRIMARY KEY,
    -- NULL for a guest. No foreign key to users, because another service of the shop may have signed in the user.
    user TEXT,
    mail TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    -- The total that the buyer saw and accepted.
    total_cents INTEGER NOT NULL CHECK (total_cents > 0),
    currency TEXT NOT NULL,
    placed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX orders_by_user ON orders (user, placed_at) WHERE user IS NOT NULL;

CREATE TABLE order_lines (
    order_id TEXT NOT NULL REFERENCES orders (id),
    item TEXT NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    -- The price of one piece at the time of the order.
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    PRIMARY KEY (order_id, item)
) STRICT, WITHOUT ROWID;
