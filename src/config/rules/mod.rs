//! The rules of a storefront for its cookies, paths, headers and query parameters. They come from variables or a
//! preset, so an unchanged storefront needs no code for them.

mod choices;
mod cookies;
mod headers;
mod holes;
pub mod paths;
mod patterns;
mod query;

pub use self::{
    choices::Choices,
    cookies::{CookieKind, CookieRules, DroppedCookie, VariedCookie, is_cookie_name, is_token_byte},
    headers::{Forward, HeaderRules, NormalizedHeader, may_select, selecting_headers},
    holes::{HolePage, HoleRule, HoleRules, HoleSource},
    paths::PathPatterns,
    patterns::Patterns,
    query::{Parameters, QueryRules},
};
use super::item_routes::ItemRoutes;

/// Rules for URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlRules {
    /// `ITEM_ROUTES`: the URLs that name an item.
    pub items: ItemRoutes,
    /// `QUERY_IGNORED` and `QUERY_KEPT`.
    pub query: QueryRules,
    /// `PATHS_PERSONAL`: pages at these paths are never shared.
    pub personal_paths: PathPatterns,
    /// `PATHS_SHARED`: pages at these paths are stored although the storefront's `Cache-Control` forbids it.
    pub shared_paths: PathPatterns,
    /// `WRITES_PERSONAL`: writes to these paths void no page.
    pub personal_writes: PathPatterns,
    /// `CHOICES`: requests after which the session keeps another language, currency or the like.
    pub choices: Choices,
}

/// The entries of a list, without the white space around them and without empty ones.
pub(super) fn entries(text: &str, separator: char) -> impl Iterator<Item = &str> + Clone {
    text.split(separator).map(str::trim).filter(|entry| !entry.is_empty())
}
