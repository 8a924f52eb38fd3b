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
//!
//! # A change of `SHARDS`
//!
//! A token names the layout of its session, so sessions of several layouts live side by side. `SHARDS_KNOWN` lists these
//! layouts. Their shards overlap: `{3}` is the same shard of 4 and of 16. The keys that all visitors share have the
//! names of the first layout in the list, so isolates that differ in `SHARDS` only use the same ones.

use std::num::NonZeroU16;

use super::{
    families::{self, Family},
    hash::{hash_of, hex},
    ids::{ItemId, OrderId, RowId},
    shard::Shard,
    token::Token,
};
use crate::ports::{error::Error, time::Timestamp};

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

/// The layout of the keys: the book's, or spread over shards. While `SHARDS` changes, there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// The layout of new sessions.
    shards: NonZeroU16,
    /// The layout whose names the shared keys have.
    shared: NonZeroU16,
    /// The layout of tokens without a mark.
    unmarked: NonZeroU16,
    /// Some sessions have the book's keys.
    has_book: bool,
    /// The number of shards that have a number.
    numbered: u16,
    /// There are sessions of several layouts.
    is_changing: bool,
}

impl Keys {
    /// The book's layout.
    pub const BOOK: Self = Self::new(NonZeroU16::MIN);
    /// The most shards. Upstash's limit of 100 MB for a record then allows 256 million sessions.
    pub const MAX_SHARDS: u16 = 256;

    /// The layout for this number of shards. 1 is the book's.
    #[must_use]
    pub const fn new(shards: NonZeroU16) -> Self {
        let (has_book, numbered) = if shards.get() == 1 { (true, 0) } else { (false, shards.get()) };
        Self { shards, shared: shards, unmarked: shards, has_book, numbered, is_changing: false }
    }

    /// New sessions have the layout `shards`; sessions of the layouts in `known` may be live. The shared keys have the
    /// names of the first of them.
    #[must_use]
    pub fn with_known(shards: NonZeroU16, known: &[NonZeroU16]) -> Self {
        let first = known.first().copied().unwrap_or(shards);
        known.iter().fold(Self { shared: first, ..Self::new(shards) }, |keys, &other| {
            let Self { has_book, numbered, .. } = Self::new(other);
            let has_book = keys.has_book || has_book;
            Self {
                // Without the book's layout, only edgefront before the mark made such tokens, in its first layout.
                unmarked: if has_book { NonZeroU16::MIN } else { first },
                has_book,
                numbered: keys.numbered.max(numbered),
                is_changing: keys.is_changing || other != shards,
                ..keys
            }
        })
    }

    /// True if there is more than one shard. Then keys of different groups may be in different slots, and no script can
    /// use both.
    #[must_use]
    pub const fn is_sharded(self) -> bool {
        self.numbered > 0
    }

    /// True if there may be sessions of several layouts, so that some shards hold more sessions than others.
    #[must_use]
    pub const fn is_changing(self) -> bool {
        self.is_changing
    }

    /// True if the shared keys have hash tags. Without them, one script can use shared keys of several groups.
    #[must_use]
    pub const fn has_shared_tags(self) -> bool {
        self.shared.get() > 1
    }

    /// True if one script can use the shared keys and the keys of this token's session: both have the book's names.
    #[must_use]
    pub fn reaches_shared(self, token: &Token) -> bool {
        !self.has_shared_tags() && self.shard_of(token) == Shard::BOOK
    }

    /// The number of shards of new sessions.
    #[must_use]
    pub const fn shard_count(self) -> NonZeroU16 {
        self.shards
    }

    /// All shards, in order.
    #[must_use]
    pub fn shards(self) -> impl ExactSizeIterator<Item = Shard> + Clone {
        let first = u16::from(!self.has_book);
        (first..=self.numbered).map(|place| place.checked_sub(1).map_or(Shard::BOOK, Shard::numbered))
    }

    /// True if new sessions may be in `shard`.
    #[must_use]
    pub fn is_in_use(self, shard: Shard) -> bool {
        if self.shards.get() == 1 {
            shard == Shard::BOOK
        } else {
            shard != Shard::BOOK && shard.number() < self.shards.get()
        }
    }

    #[must_use]
    pub fn shard_of(self, token: &Token) -> Shard {
        let layout = self.layout_of(token);
        if layout.get() == 1 { Shard::BOOK } else { Shard::numbered(token.shard(layout)) }
    }

    /// True if the token's session has another layout than new sessions.
    #[must_use]
    pub fn is_of_other_layout(self, token: &Token) -> bool {
        self.layout_of(token) != self.shards
    }

    /// Draws a token for a session that follows no other.
    ///
    /// # Errors
    /// As [`Token::new`].
    pub fn draw(self, now: Timestamp) -> Result<Token, Error> {
        Token::new_in_layout(self.shards, now)
    }

    /// Draws a token for the shard of `token`.
    ///
    /// # Errors
    /// As [`Token::new`].
    pub fn draw_beside(self, token: &Token, now: Timestamp) -> Result<Token, Error> {
        let layout = self.layout_of(token);
        Token::new_in_shard(token.shard(layout), layout, now)
    }

    /// Draws a token for a login without a session. A repetition with the same idempotency `key` finds the same shard.
    ///
    /// # Errors
    /// As [`Token::new`].
    pub fn draw_for_idempotency_key(self, owner: &str, key: &str, now: Timestamp) -> Result<Token, Error> {
        let [high, low, ..] = hash_of(owner, key);
        Token::new_in_shard(u16::from_be_bytes([high, low]) % self.shards, self.shards, now)
    }

    fn layout_of(self, token: &Token) -> NonZeroU16 {
        token.layout().unwrap_or(self.unmarked)
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
        let tag = if self.has_shared_tags() { family.tag() } else { "" };
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
