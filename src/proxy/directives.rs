//! The directives of an origin: its `Edge-*` response headers, and `Surrogate-Control`.

use http::HeaderMap;

use super::{esi, headers::remove};
use crate::{
    carts::CartChanges,
    config::CartConfig,
    orders::Order,
    ports::{error::Error, header_names::is_edge},
    schema::ids::{ItemId, Tag, UserId},
};

/// Largest number of tags of a page: every hit looks up each of them.
pub const MAX_TAGS: usize = 32;

/// The directives of one response; the visitor does not get these headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginDirectives {
    /// `Edge-Login`: the visitor logged in as this user.
    pub user: Option<UserId>,
    /// `Edge-Logout`.
    pub logout: Option<LogoutScope>,
    /// `Edge-Cart`: changes of the visitor's cart, all or none.
    pub cart: Option<CartChanges>,
    /// `Edge-Order`: the visitor's order.
    pub order: Option<Box<Order>>,
    /// `Edge-Item`: the item that the page shows, regardless of its URL.
    pub item: Option<ItemId>,
    /// `Edge-Tags`: names for purges; at most [`MAX_TAGS`].
    pub tags: Vec<Tag>,
    /// The response has a directive for its visitor's session, cart or order, valid or not.
    pub is_personal: bool,
    /// `Surrogate-Control: content="ESI/1.0"`: the body has [ESI](super::esi).
    pub has_esi: bool,
}

impl OriginDirectives {
    /// The user whose sessions end, if [`LogoutScope::User`] names one. A login comes before a logout.
    #[must_use]
    pub fn named_logout(&self) -> Option<&UserId> {
        match &self.logout {
            Some(LogoutScope::User(user)) if self.user.is_none() => Some(user),
            _ => None,
        }
    }
}

/// The sessions that `Edge-Logout` ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogoutScope {
    /// `1`: the visitor's session.
    This,
    /// `all`: every session of the visitor's user.
    All,
    /// `user=<user id>`: every session of this user, as after a reset of the password. The visitor's own session stays,
    /// unless it belongs to this user.
    User(UserId),
}

impl LogoutScope {
    /// Parses the header's value.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        match (text, text.strip_prefix("user=")) {
            ("1", _) => Ok(Self::This),
            ("all", _) => Ok(Self::All),
            (_, Some(user)) => UserId::parse(user).map(Self::User),
            _ => Err(Error::invalid("edge-logout", "must be 1, all or user=<user id>")),
        }
    }

    /// Returns whether the visitor's own session ends in any case.
    pub(super) const fn ends_own(&self) -> bool {
        !matches!(self, Self::User(_))
    }
}

/// The directives about one visitor's session, cart or order.
const PERSONAL: [&str; 4] = ["edge-login", "edge-logout", "edge-cart", "edge-order"];

impl OriginDirectives {
    /// Parses and removes the headers.
    pub(super) fn take(headers: &mut HeaderMap, config: CartConfig) -> Self {
        let has_esi = esi::is_declared(headers);
        headers.remove("surrogate-control");
        // Most responses have none.
        if !headers.keys().any(is_edge) {
            return Self { has_esi, ..Self::default() };
        }
        let directives = Self {
            user: read(headers, "edge-login", UserId::parse),
            logout: read(headers, "edge-logout", LogoutScope::parse),
            cart: read(headers, "edge-cart", |text| CartChanges::parse(text, &config)),
            order: read(headers, "edge-order", |text| Order::parse(text).map(Box::new)),
            item: read(headers, "edge-item", ItemId::parse),
            tags: tags(headers),
            is_personal: PERSONAL.iter().any(|name| headers.contains_key(*name)),
            has_esi,
        };
        remove(headers, is_edge);
        directives
    }
}

/// Parses a header. An invalid one is logged and ignored.
fn read<T>(headers: &HeaderMap, name: &str, parse: impl Fn(&str) -> Result<T, Error>) -> Option<T> {
    match parse(&String::from_utf8_lossy(headers.get(name)?.as_bytes())) {
        Ok(value) => Some(value),
        Err(error) => {
            log::error!("the origin's header {name} is invalid and was ignored: {error}");
            None
        }
    }
}

/// The valid tags of `Edge-Tags: a, b`. At most [`MAX_TAGS`].
fn tags(headers: &HeaderMap) -> Vec<Tag> {
    let lines = headers.get_all("edge-tags").iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|tag| Tag::parse(tag.trim()).ok()).take(MAX_TAGS).collect()
}
