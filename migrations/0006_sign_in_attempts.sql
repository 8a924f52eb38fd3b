-- Sign-in attempts at the demo shop, by account and network. Times are in Unix seconds.

CREATE TABLE sign_in_attempts (
    -- The email of the form in lower case. It need not have an account.
    user TEXT NOT NULL,
    -- The client's IPv4 address or IPv6 /64 network. Empty if the platform names none.
    network TEXT NOT NULL,
    -- Failed attempts since the last sign-in. They determine the delay before the next attempt.
    failures INTEGER NOT NULL,
    tried_at INTEGER NOT NULL,
    -- The last sign-in of this user from this network. NULL if there was none.
    signed_in_at INTEGER,
    PRIMARY KEY (user, network)
) STRICT, WITHOUT ROWID;

-- The shop deletes old rows by this index.
CREATE INDEX sign_in_attempts_by_time ON sign_in_attempts (tried_at);
