//! The keys of sessions.

use super::{
    families::{self, Family},
    hash::{hash_of, hex},
};
use crate::schema::{
    ids::{OrderId, UserId},
    token::Token,
};

/// One part of the sessions, and its keys. The book's layout has one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// None in the book's layout, whose keys have no tag.
    tag: Option<u16>,
}

impl Shard {
    /// The book's layout.
    pub const BOOK: Self = Self { tag: None };

    pub(super) const fn numbered(number: u16) -> Self {
        Self { tag: Some(number) }
    }

    /// The number of the shard, from 0; also 0 in the book's layout.
    #[must_use]
    pub fn number(self) -> u16 {
        self.tag.unwrap_or_default()
    }

    /// The number, or `book`.
    #[must_use]
    pub fn name(self) -> String {
        self.tag.map_or_else(|| "book".to_owned(), |number| number.to_string())
    }

    /// [`families::LOGIN`].
    #[must_use]
    pub fn login(self) -> String {
        self.key(&families::LOGIN, "")
    }

    /// [`families::RECENT`].
    #[must_use]
    pub fn recent(self) -> String {
        self.key(&families::RECENT, "")
    }

    /// [`families::ABANDONED`].
    #[must_use]
    pub fn abandoned(self) -> String {
        self.key(&families::ABANDONED, "")
    }

    /// [`families::VIEWED`].
    #[must_use]
    pub fn viewed(self, token: &Token) -> String {
        self.key(&families::VIEWED, token.as_str())
    }

    /// [`families::CART`].
    #[must_use]
    pub fn cart(self, token: &Token) -> String {
        self.key(&families::CART, token.as_str())
    }

    /// `viewed:` and `cart:` of a member of `recent:`. Other code of the book writes members there that are not a
    /// [`Token`]. None if the member is empty, because `viewed:` alone is the ranking.
    #[must_use]
    pub fn viewed_and_cart(self, member: &str) -> Option<(String, String)> {
        (!member.is_empty()).then(|| (self.key(&families::VIEWED, member), self.key(&families::CART, member)))
    }

    /// [`families::SESSIONS`].
    #[must_use]
    pub fn sessions(self, user: &UserId) -> String {
        self.key(&families::SESSIONS, user.as_str())
    }

    /// [`families::DEVICES`].
    #[must_use]
    pub fn devices(self, user: &UserId) -> String {
        self.key(&families::DEVICES, user.as_str())
    }

    /// A key that never exists: `sessions:` of an empty user. A script declares the keys of a user's lists, and a guest
    /// has none.
    #[must_use]
    pub fn absent_list(self) -> String {
        self.key(&families::SESSIONS, "")
    }

    /// [`families::CART_ORDER`].
    #[must_use]
    pub fn cart_order(self, order: &OrderId) -> String {
        self.key(&families::CART_ORDER, order.as_str())
    }

    /// [`families::IDEMPOTENCY`]. The owner of `key` is a token or a user.
    #[must_use]
    pub fn idempotency(self, owner: &str, key: &str) -> String {
        self.key(&families::IDEMPOTENCY, &hex(&hash_of(owner, key)))
    }

    fn key(self, family: &Family, name: &str) -> String {
        let prefix = family.prefix();
        match self.tag {
            None => format!("{prefix}{name}"),
            Some(tag) => format!("{prefix}{{{tag}}}{name}"),
        }
    }
}
