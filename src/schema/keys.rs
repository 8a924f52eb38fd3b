//! The whole Redis schema. Every key that edgefront touches is made here, from checked parts only.
//!
//! | key | type | content |
//! |---|---|---|
//! | `login:` | hash | token → user id; an empty value is a guest's session |
//! | `recent:` | zset | token → last seen, Unix seconds |
//! | `viewed:{token}` | zset | item → last viewed, Unix seconds; the 25 newest |
//! | `cart:{token}` | hash | item → quantity |
//! | `sessions:{user}` | zset | token → when it logged in, Unix seconds; may name tokens that have ended, `login:` decides; lives as long after the last login as a session can |
//! | `devices:{user}` | hash | token → the device's id and what the user calls it, as `0123456789abcdef Firefox on Windows`; else as `sessions:{user}` |
//! | `abandoned:` | stream | `user`, `seen`, `items` (JSON: item, quantity, item …) of carts that ended with their session; the newest 10,000 or so |
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
//! | `once:{hash}` | string | what a request with an `Idempotency-Key` asked for, or the token that it got; for a day. A token that a login ended → the one that it began; for ten minutes |
//! | `jobs:` | hash | job → the last report that says something, as JSON; `heartbeat` → when the crons last ran, Unix seconds |
//!
//! The first column of the book's own keys (`login:` `recent:` `viewed:` `cart:` `cache:` `schedule:` `delay:` `inv:`) is
//! kept to the letter, so that code written against the book works on the same Redis.
//!
//! # Shards
//!
//! With `SHARDS` > 1 every key but `traffic:` and `jobs:` has a hash tag behind its first colon, which puts all keys of a tag
//! into one slot of a Redis Cluster. Each script stays within one tag.
//!
//! | tag | keys | why |
//! |---|---|---|
//! | `{0}` … `{n-1}` | sessions: `login:{3}` `recent:{3}` `abandoned:{3}` `viewed:{3}TOKEN` `cart:{3}TOKEN` `sessions:{3}USER` `devices:{3}USER` `order:{3}ORDER` `once:{3}HASH` | they grow with the visitors. A token has its shard in itself; one that follows another is drawn for the same shard |
//! | `{pages}` | ranking and stored pages | a page is let in by its rank; both are bounded (`RANKING_KEEP`, `PAGE_RANK_LIMIT`) |
//! | `{rows}` | rows, their schedule, flash sales | a sale reads its row; both are bounded by what is scheduled |
//! | `{orders}` | insights | an order counts for all its items at once; bounded by `RANKING_KEEP` |
//!
//! A user's sessions are listed in the shard that each is in, so the list and the session change in one step; who wants all of
//! them asks every shard, in one pipeline.

use std::num::NonZeroU16;

use super::{
    hash::{hash_of, hex},
    ids::{ItemId, OrderId, RowId},
    shard::Shard,
    token::Token,
};

pub const TRAFFIC: &str = "traffic:";
pub const JOBS: &str = "jobs:";
/// How long `order:{order}` lives, in seconds: 14 days, as long as the queues of the large platforms keep what a shop has put
/// there, so that no report is repeated later. Each takes 112 bytes of Valkey's memory.
pub const ORDER_TTL: u64 = 14 * 86_400;
/// How long `once:{hash}` of an idempotency key lives, in seconds: a day.
pub const ONCE_TTL: u64 = 86_400;

/// Where the keys lie: in the book's layout, or spread over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    shards: NonZeroU16,
}

const PAGES: &str = "{pages}";
const ROWS: &str = "{rows}";
const ORDERS: &str = "{orders}";

impl Keys {
    /// The book's layout.
    pub const BOOK: Self = Self { shards: NonZeroU16::MIN };
    /// With so many, 256 million sessions fit into Upstash's limit of 100 MB for a record.
    pub const MAX_SHARDS: u16 = 256;

    /// The layout for so many shards; one is the book's.
    #[must_use]
    pub const fn new(shards: NonZeroU16) -> Self {
        Self { shards }
    }

    /// Whether keys of different parts may be in different slots, so that no script can have both.
    #[must_use]
    pub const fn is_sharded(self) -> bool {
        self.shards.get() > 1
    }

    /// How many shards there are.
    #[must_use]
    pub const fn count(self) -> NonZeroU16 {
        self.shards
    }

    /// All shards, in order.
    #[must_use]
    pub fn shards(self) -> impl ExactSizeIterator<Item = Shard> + Clone {
        (0..self.shards.get()).map(move |number| self.shard(number))
    }

    /// The shard of a token's session.
    #[must_use]
    pub fn shard_of(self, token: &Token) -> Shard {
        Shard::new(self.is_sharded().then(|| token.shard(self.shards)))
    }

    /// The shard of whoever comes without a token, but with an idempotency `key`: the same for the same.
    #[must_use]
    pub fn shard_of_key(self, who: &str, key: &str) -> Shard {
        let [high, low, ..] = hash_of(who, key);
        self.shard(u16::from_be_bytes([high, low]) % self.shards)
    }

    fn shard(self, number: u16) -> Shard {
        Shard::new(self.is_sharded().then_some(number))
    }

    /// The ranking.
    #[must_use]
    pub fn ranking(self) -> String {
        self.key("viewed:", PAGES, "")
    }

    #[must_use]
    pub fn rescaled(self) -> String {
        self.key("rescaled:", PAGES, "")
    }

    #[must_use]
    pub fn ranked(self) -> String {
        self.key("ranked:", PAGES, "")
    }

    /// `key` is the idempotency key of a reported view. Nobody's: these visitors have no session that could tell them apart.
    #[must_use]
    pub fn once_viewed(self, key: &str) -> String {
        self.key("once:", PAGES, &hex(&hash_of("", key)))
    }

    /// `hash` is the page's SHA-256 in hexadecimal.
    #[must_use]
    pub fn page(self, hash: &str) -> String {
        self.key("cache:", PAGES, hash)
    }

    /// `hash` as in [`Keys::page`].
    #[must_use]
    pub fn variants(self, hash: &str) -> String {
        self.key("variants:", PAGES, hash)
    }

    /// `hash` as in [`Keys::page`].
    #[must_use]
    pub fn render(self, hash: &str) -> String {
        self.key("render:", PAGES, hash)
    }

    #[must_use]
    pub fn purged(self) -> String {
        self.key("purged:", PAGES, "")
    }

    /// When each stored page was stored.
    #[must_use]
    pub fn pages(self) -> String {
        self.key("pages:", PAGES, "")
    }

    #[must_use]
    pub fn dying(self) -> String {
        self.key("dying:", PAGES, "")
    }

    /// What each stored page takes.
    #[must_use]
    pub fn bytes(self) -> String {
        self.key("bytes:", PAGES, "")
    }

    #[must_use]
    pub fn schedule(self) -> String {
        self.key("schedule:", ROWS, "")
    }

    #[must_use]
    pub fn delay(self) -> String {
        self.key("delay:", ROWS, "")
    }

    #[must_use]
    pub fn row(self, row: &RowId) -> String {
        self.key("inv:", ROWS, row.as_str())
    }

    /// A flash sale has its row's name.
    #[must_use]
    pub fn flash(self, sale: &RowId) -> String {
        self.key("flash:", ROWS, sale.as_str())
    }

    /// As [`Keys::flash`].
    #[must_use]
    pub fn held(self, sale: &RowId) -> String {
        self.key("held:", ROWS, sale.as_str())
    }

    /// What the insights know of an order; what its cart knows is in [`Shard::order`].
    #[must_use]
    pub fn order(self, order: &OrderId) -> String {
        self.key("order:", ORDERS, order.as_str())
    }

    /// How often each item was bought.
    #[must_use]
    pub fn totals(self) -> String {
        self.key("bought:", ORDERS, "")
    }

    /// Of which half-life [`Keys::totals`] is.
    #[must_use]
    pub fn totals_rescaled(self) -> String {
        self.key("rescaled:", ORDERS, "bought")
    }

    #[must_use]
    pub fn bought(self, item: &ItemId) -> String {
        self.key("bought:", ORDERS, item.as_str())
    }

    #[must_use]
    pub fn led_to(self, item: &ItemId) -> String {
        self.key("led-to:", ORDERS, item.as_str())
    }

    fn key(self, family: &str, tag: &str, name: &str) -> String {
        let tag = if self.is_sharded() { tag } else { "" };
        format!("{family}{tag}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::time::Timestamp;

    #[test]
    fn one_shard_is_the_books_layout() {
        let (keys, token) = (Keys::BOOK, Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap());
        let shard = keys.shard_of(&token);
        assert_eq!(
            (shard.login(), shard.recent(), keys.ranking()),
            ("login:".into(), "recent:".into(), "viewed:".into())
        );
        assert_eq!((keys.schedule(), keys.page("ab")), ("schedule:".to_owned(), "cache:ab".to_owned()));
        assert_eq!(shard.cart(&token), format!("cart:{}", token.as_str()));
        assert_eq!(keys.shards().collect::<Vec<_>>(), [shard]);
    }

    #[test]
    fn a_shard_has_its_tag_behind_the_first_colon() {
        let keys = Keys::new(NonZeroU16::new(8).unwrap());
        let now = Timestamp::from_millis(1_795_000_000_000);
        for shard in keys.shards() {
            let token = Token::new_in(shard.number(), keys.count(), now).unwrap();
            assert_eq!((keys.shard_of(&token), token.began()), (shard, now));
            let tag = format!("{{{}}}", shard.number());
            assert_eq!(shard.login(), format!("login:{tag}"));
            assert_eq!(shard.viewed(&token), format!("viewed:{tag}{}", token.as_str()));
        }
        let order = OrderId::parse("A-1").unwrap();
        assert_eq!(
            (keys.ranking(), keys.totals_rescaled()),
            ("viewed:{pages}".into(), "rescaled:{orders}bought".into())
        );
        assert_eq!(keys.order(&order), "order:{orders}A-1");
    }

    #[test]
    fn tokens_spread_evenly_over_the_shards() {
        let keys = Keys::new(NonZeroU16::new(10).unwrap());
        let mut counts = [0_u32; 10];
        for _ in 0..20_000 {
            let token = Token::new(Timestamp::from_millis(0)).unwrap();
            counts[usize::from(keys.shard_of(&token).number())] += 1;
        }
        // 2,000 each; 8 standard deviations of 42.
        assert!(counts.iter().all(|count| (1_660..=2_340).contains(count)), "{counts:?}");
    }
}
