//! The whole Redis schema. Every key that edgefront touches is made here, from checked parts only.
//!
//! | key | type | content |
//! |---|---|---|
//! | `login:` | hash | token → user id; an empty value is a guest's session |
//! | `recent:` | zset | token → last seen, Unix seconds |
//! | `viewed:{token}` | zset | item → last viewed, Unix seconds; the 25 newest |
//! | `cart:{token}` | hash | item → quantity |
//! | `sessions:{user}` | zset | token → when it logged in, Unix seconds; may name tokens that have ended, `login:` decides |
//! | `devices:{user}` | hash | token → the device's id and what the user calls it, as `0123456789abcdef Firefox on Windows`; else as `sessions:{user}` |
//! | `abandoned:` | stream | `user`, `seen`, `items` (JSON) of carts that ended with their session; the newest 10,000 or so |
//! | `cache:{hash}` | string | a stored response, or by which headers its variants are told apart; `{hash}` = SHA-256 of the canonical request, hexadecimal |
//! | `variants:{hash}` | hash | those headers of the request → the response stored for them; at most 16 |
//! | `render:{hash}` | string | the lease of the one request that renders the page now, or for two minutes that it can not be stored |
//! | `purged:` | zset | `all`, `item:{item}`, `url:{hash}`, `tag:{tag}` (with `~` before it: softly) → when it was purged, Unix microseconds of Redis' clock |
//! | `pages:` | zset | hash of a stored page → when it was stored, Unix microseconds of Redis' clock |
//! | `dying:` | zset | hash of a stored page → when it dies, as `pages:` |
//! | `bytes:` | hash | hash of a stored page → what it takes with all its variants, in bytes; `total` → the sum |
//! | `schedule:` | zset | row → next refresh, Unix seconds |
//! | `delay:` | zset | row → period, seconds |
//! | `inv:{row}` | string | the row as a JSON object: column → value |
//! | `flash:{sale}` | hash | a flash sale: `window` (its begin, Unix s), `sold`, `hold:{user}` → reservation, `bought:{user}` → order, `order:{order}` → user |
//! | `held:{sale}` | zset | user → when their hold on a piece ends, Unix seconds |
//! | `viewed:` | zset | item → −views, decayed |
//! | `order:{order}` | hash | what of an order is done: `cart`, `insights`; for 14 days |
//! | `bought:` | zset | item → orders with it, decayed |
//! | `rescaled:bought` | string | the Unix second in which the half-life began that `bought:` is of |
//! | `bought:{item}` | string | what was bought together with the item, as JSON: `began` (of the half-life that it is of), `orders`, `items` (item → orders with both) |
//! | `led-to:{item}` | string | what visitors bought who had viewed the item; as `bought:{item}` |
//! | `rescaled:` | string | the Unix second in which the last half-life began that the ranking was rescaled in |
//! | `ranked:` | zset | the first 100 of `viewed:` as they were at the last rescale that halved |
//! | `traffic:` | stream | what an isolate counted since its last entry: a field for each figure that is not 0; the newest 10,000 or so |
//! | `once:{hash}` | string | what a request with an `Idempotency-Key` asked for, or the token that it got; for a day |
//! | `jobs:` | hash | job → the last report that says something, as JSON; `heartbeat` → when the crons last ran, Unix seconds |
//!
//! The first column of the book's own keys (`login:` `recent:` `viewed:` `cart:` `cache:` `schedule:` `delay:` `inv:`) is
//! kept to the letter, so that code written against the book works on the same Redis.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::ids::{ItemId, OrderId, RowId, Token, UserId};

pub const LOGIN: &str = "login:";
pub const RECENT: &str = "recent:";
pub const ABANDONED: &str = "abandoned:";
pub const PURGED: &str = "purged:";
pub const PAGES: &str = "pages:";
pub const DYING: &str = "dying:";
pub const BYTES: &str = "bytes:";
pub const SCHEDULE: &str = "schedule:";
pub const DELAY: &str = "delay:";
pub const RANKING: &str = "viewed:";
pub const RESCALED: &str = "rescaled:";
pub const RANKED: &str = "ranked:";
pub const TRAFFIC: &str = "traffic:";
pub const BOUGHT: &str = "bought:";
pub const BOUGHT_RESCALED: &str = "rescaled:bought";
pub const JOBS: &str = "jobs:";
/// How long `order:{order}` lives, in seconds: 14 days, as long as the queues of the large platforms keep what a shop has put
/// there, so that no report is repeated later. Each takes 112 bytes of Valkey's memory.
pub const ORDER_TTL: u64 = 14 * 86_400;
/// How long `once:{hash}` lives, in seconds: a day.
pub const ONCE_TTL: u64 = 86_400;
/// `sessions:` of nobody. It never exists: it stands in for the keys that a script declares and a guest does not have.
pub const NO_SESSIONS: &str = "sessions:";

#[must_use]
pub fn viewed(token: &Token) -> String {
    format!("viewed:{}", token.as_str())
}

#[must_use]
pub fn cart(token: &Token) -> String {
    format!("cart:{}", token.as_str())
}

/// `viewed:` and `cart:` of a member of `recent:`, which need not be a token of ours: other code of the book writes there too.
/// None if it is empty, since `viewed:` alone is the ranking.
#[must_use]
pub fn of_member(member: &str) -> Option<(String, String)> {
    (!member.is_empty()).then(|| (format!("viewed:{member}"), format!("cart:{member}")))
}

#[must_use]
pub fn sessions(user: &UserId) -> String {
    format!("sessions:{user}")
}

#[must_use]
pub fn devices(user: &UserId) -> String {
    format!("devices:{user}")
}

#[must_use]
pub fn order(order: &OrderId) -> String {
    format!("order:{order}")
}

#[must_use]
pub fn bought(item: &ItemId) -> String {
    format!("bought:{item}")
}

#[must_use]
pub fn led_to(item: &ItemId) -> String {
    format!("led-to:{item}")
}

#[must_use]
pub fn row(row: &RowId) -> String {
    format!("inv:{row}")
}

/// A flash sale has its row's name.
#[must_use]
pub fn flash(sale: &RowId) -> String {
    format!("flash:{sale}")
}

/// As [`flash`].
#[must_use]
pub fn held(sale: &RowId) -> String {
    format!("held:{sale}")
}

/// `hash` is the page's SHA-256 in hexadecimal.
#[must_use]
pub fn page(hash: &str) -> String {
    format!("cache:{hash}")
}

/// `hash` as in [`page`].
#[must_use]
pub fn variants(hash: &str) -> String {
    format!("variants:{hash}")
}

/// `hash` as in [`page`].
#[must_use]
pub fn render(hash: &str) -> String {
    format!("render:{hash}")
}

/// `who` is a token or a user, `key` their idempotency key: hashed together, so that two visitors' keys never meet.
#[must_use]
pub fn once(who: &str, key: &str) -> String {
    // Neither a token nor a user holds a brace.
    let hash = Sha256::new().chain_update(who).chain_update("{").chain_update(key).finalize();
    format!("once:{}", hex(&hash))
}

/// Lower-case hexadecimal digits, as the hashes in keys are written.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
