//! The keys. Every key that edgefront touches is made here or in [`shard`](super::shard), from checked parts only.
//!
//! [`families`] lists all keys with their content; `docs/redis.md` shows that table. The book's own
//! keys (`login:` `recent:` `viewed:` `cart:` `cache:` `schedule:` `delay:` `inv:`) keep their names and their content,
//! so that code written against the book works on the same Redis.
//!
//! # Shards
//!
//! With `SHARDS` above 1, every key except `traffic:` and `jobs:` has a hash tag right after its first colon:
//! `cart:{3}TOKEN`. The tag puts all keys of a [`Group`](super::families::Group) or shard into one slot of a Redis
//! Cluster. Each script stays within one tag.
//!
//! Sessions have shards because they grow with the visitors. A token contains its shard, and a token that follows
//! another one is drawn for the same shard. The other groups have one slot each, because variables bound them, whatever
//! the number of visitors.
//!
//! A user's sessions are listed in the shard of each session, so that the list and the session change in one step. A
//! caller that needs all sessions of a user asks every shard, in one pipeline.

use std::num::NonZeroU16;

use super::{
    families::{self, Family},
    hash::{hash_of, hex},
    ids::{ItemId, OrderId, RowId},
    shard::Shard,
    token::Token,
};

/// The stream of traffic counters.
pub const TRAFFIC: &str = families::TRAFFIC.prefix();
/// [`families::TRAFFIC_MINUTES`].
pub const TRAFFIC_MINUTES: &str = "traffic:minutes";
/// [`families::TRAFFIC_HOURS`].
pub const TRAFFIC_HOURS: &str = "traffic:hours";
/// [`families::TRAFFIC_TOTALS`].
pub const TRAFFIC_TOTALS: &str = "traffic:totals";
/// The hash of the jobs' reports.
pub const JOBS: &str = families::JOBS.prefix();
/// Time to live of `order:{order}`, in seconds: 14 days. The queues of the large platforms keep messages at most that
/// long, so no report of an order is repeated later. Each key takes 112 bytes of Valkey's memory.
pub const ORDER_TTL: u64 = 14 * 86_400;
/// Time to live of an idempotency key in `once:{hash}`, in seconds: a day.
pub const IDEMPOTENCY_TTL: u64 = 86_400;

/// The layout of the keys: the book's, or spread over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    shards: NonZeroU16,
}

impl Keys {
    /// The book's layout.
    pub const BOOK: Self = Self { shards: NonZeroU16::MIN };
    /// The most shards. Upstash's limit of 100 MB for a record then allows 256 million sessions.
    pub const MAX_SHARDS: u16 = 256;

    /// The layout for this number of shards. 1 is the book's.
    #[must_use]
    pub const fn new(shards: NonZeroU16) -> Self {
        Self { shards }
    }

    /// True if there is more than one shard. Then keys of different groups may be in different slots, and no script can
    /// use both.
    #[must_use]
    pub const fn is_sharded(self) -> bool {
        self.shards.get() > 1
    }

    /// The number of shards.
    #[must_use]
    pub const fn shard_count(self) -> NonZeroU16 {
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

    /// The shard for a login without a token. A repetition with the same idempotency `key` finds the same shard.
    #[must_use]
    pub fn shard_of_idempotency_key(self, user: &str, key: &str) -> Shard {
        let [high, low, ..] = hash_of(user, key);
        self.shard(u16::from_be_bytes([high, low]) % self.shards)
    }

    fn shard(self, number: u16) -> Shard {
        Shard::new(self.is_sharded().then_some(number))
    }

    /// [`families::RANKING`].
    #[must_use]
    pub fn ranking(self) -> String {
        self.key(&families::RANKING, "")
    }

    /// [`families::RANKING_RESCALED`].
    #[must_use]
    pub fn ranking_rescaled(self) -> String {
        self.key(&families::RANKING_RESCALED, "")
    }

    /// [`families::PREVIOUS_RANKING`].
    #[must_use]
    pub fn previous_ranking(self) -> String {
        self.key(&families::PREVIOUS_RANKING, "")
    }

    /// [`families::HOURLY_RANKS`].
    #[must_use]
    pub fn hourly_ranks(self) -> String {
        self.key(&families::HOURLY_RANKS, "hour")
    }

    /// [`families::VIEW_IDEMPOTENCY`]. All visitors share these keys, because a visitor without a session has no name.
    #[must_use]
    pub fn view_idempotency(self, key: &str) -> String {
        self.key(&families::VIEW_IDEMPOTENCY, &hex(&hash_of("", key)))
    }

    /// [`families::PAGE`]. `hash` is the page's SHA-256 in hexadecimal.
    #[must_use]
    pub fn page(self, hash: &str) -> String {
        self.key(&families::PAGE, hash)
    }

    /// [`families::PAGE_VARIANTS`]. `hash` as in [`Keys::page`].
    #[must_use]
    pub fn variants(self, hash: &str) -> String {
        self.key(&families::PAGE_VARIANTS, hash)
    }

    /// [`families::RENDER_LEASE`]. `hash` as in [`Keys::page`].
    #[must_use]
    pub fn render(self, hash: &str) -> String {
        self.key(&families::RENDER_LEASE, hash)
    }

    /// [`families::PURGE_MARKS`].
    #[must_use]
    pub fn purged(self) -> String {
        self.key(&families::PURGE_MARKS, "")
    }

    /// [`families::LATEST_PURGE`].
    #[must_use]
    pub fn latest_purge(self) -> String {
        self.key(&families::LATEST_PURGE, "latest")
    }

    /// [`families::STORED_PAGES`].
    #[must_use]
    pub fn pages(self) -> String {
        self.key(&families::STORED_PAGES, "")
    }

    /// [`families::SCHEDULE`].
    #[must_use]
    pub fn schedule(self) -> String {
        self.key(&families::SCHEDULE, "")
    }

    /// [`families::DELAY`].
    #[must_use]
    pub fn delay(self) -> String {
        self.key(&families::DELAY, "")
    }

    /// [`families::ROW`].
    #[must_use]
    pub fn row(self, row: &RowId) -> String {
        self.key(&families::ROW, row.as_str())
    }

    /// [`families::FLASH_SALE`]. A flash sale has the id of its row.
    #[must_use]
    pub fn flash_sale(self, sale: &RowId) -> String {
        self.key(&families::FLASH_SALE, sale.as_str())
    }

    /// [`families::HOLDS`]. A flash sale has the id of its row.
    #[must_use]
    pub fn holds(self, sale: &RowId) -> String {
        self.key(&families::HOLDS, sale.as_str())
    }

    /// [`families::ORDER`]. For the order's cart, see [`Shard::cart_order`].
    #[must_use]
    pub fn order(self, order: &OrderId) -> String {
        self.key(&families::ORDER, order.as_str())
    }

    /// [`families::PURCHASES`].
    #[must_use]
    pub fn purchases(self) -> String {
        self.key(&families::PURCHASES, "")
    }

    /// [`families::PURCHASES_RESCALED`].
    #[must_use]
    pub fn purchases_rescaled(self) -> String {
        self.key(&families::PURCHASES_RESCALED, "bought")
    }

    /// [`families::BOUGHT_TOGETHER`].
    #[must_use]
    pub fn bought_together(self, item: &ItemId) -> String {
        self.key(&families::BOUGHT_TOGETHER, item.as_str())
    }

    /// [`families::BOUGHT_AFTER_VIEWING`].
    #[must_use]
    pub fn bought_after_viewing(self, item: &ItemId) -> String {
        self.key(&families::BOUGHT_AFTER_VIEWING, item.as_str())
    }

    fn key(self, family: &Family, name: &str) -> String {
        let tag = if self.is_sharded() { family.tag() } else { "" };
        format!("{}{tag}{name}", family.prefix())
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
            let token = Token::new_in_shard(shard.number(), keys.shard_count(), now).unwrap();
            assert_eq!((keys.shard_of(&token), token.began()), (shard, now));
            let tag = format!("{{{}}}", shard.number());
            assert_eq!(shard.login(), format!("login:{tag}"));
            assert_eq!(shard.viewed(&token), format!("viewed:{tag}{}", token.as_str()));
        }
        let order = OrderId::parse("A-1").unwrap();
        assert_eq!(
            (keys.ranking(), keys.purchases_rescaled()),
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
