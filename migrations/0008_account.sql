-- Password resets and saved addresses of the demo shop. Times are in Unix seconds.

CREATE TABLE password_resets (
    -- A new link replaces the old one.
    user TEXT PRIMARY KEY REFERENCES users (id),
    -- SHA-256 of the link's token in hexadecimal digits: a copy of the database opens no account.
    token_hash TEXT NOT NULL UNIQUE,
    requested_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE addresses (
    -- No foreign key to users, because another service of the shop may have signed in the user.
    user TEXT NOT NULL,
    -- Street, postal code, city and country, each on a line of its own.
    address TEXT NOT NULL,
    -- The time of the last order to this address, Unix milliseconds: two orders may have the same second.
    used_at INTEGER NOT NULL,
    PRIMARY KEY (user, address)
) STRICT, WITHOUT ROWID;

INSERT INTO addresses (user, address, used_at)
SELECT user, address, 1000 * max(placed_at) FROM orders WHERE user IS NOT NULL GROUP BY user, address;
