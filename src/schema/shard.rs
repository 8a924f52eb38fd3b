//! The keys of sessions.

use super::hash::{hash_of, hex};
use crate::schema::{
    ids::{OrderId, UserId},
    token::Token,
};

/// The keys of one part of the sessions; the book's layout has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// None in the book's layout.
    tag: Option<u16>,
}

impl Shard {
    pub(super) const fn new(tag: Option<u16>) -> Self {
        Self { tag }
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(self) -> u16 {
        self.tag.unwrap_or_default()
    }

    #[must_use]
    pub fn login(self) -> String {
        self.key("login:", "")
    }

    #[must_use]
    pub fn recent(self) -> String {
        self.key("recent:", "")
    }

    #[must_use]
    pub fn abandoned(self) -> String {
        self.key("abandoned:", "")
    }

    #[must_use]
    pub fn viewed(self, token: &Token) -> String {
        self.key("viewed:", token.as_str())
    }

    #[must_use]
    pub fn cart(self, token: &Token) -> String {
        self.key("cart:", token.as_str())
    }

    /// `viewed:` and `cart:` of a member of `recent:`, which need not be a token of ours: other code of the book writes there too.
    /// None if it is empty, since `viewed:` alone is the ranking.
    #[must_use]
    pub fn of_member(self, member: &str) -> Option<(String, String)> {
        (!member.is_empty()).then(|| (self.key("viewed:", member), self.key("cart:", member)))
    }

    #[must_use]
    pub fn sessions(self, user: &UserId) -> String {
        self.key("sessions:", user.as_str())
    }

    #[must_use]
    pub fn devices(self, user: &UserId) -> String {
        self.key("devices:", user.as_str())
    }

    /// `sessions:` of nobody. It never exists: it stands in for the keys that a script declares and a guest does not have.
    #[must_use]
    pub fn no_sessions(self) -> String {
        self.key("sessions:", "")
    }

    /// What an order did to a cart of this shard.
    #[must_use]
    pub fn order(self, order: &OrderId) -> String {
        self.key("order:", order.as_str())
    }

    /// `who` is a token or a user, `key` their idempotency key: hashed together, so that two visitors' keys never meet.
    #[must_use]
    pub fn once(self, who: &str, key: &str) -> String {
        self.key("once:", &hex(&hash_of(who, key)))
    }

    fn key(self, family: &str, name: &str) -> String {
        match self.tag {
            None => format!("{family}{name}"),
            Some(tag) => format!("{family}{{{tag}}}{name}"),
        }
    }
}
