//! The request headers that may select a page.

/// Headers that no shared render carries: they belong to one visitor, ask for less than the whole page, or are set by
/// edgefront.
const NEVER_VARIED: [&str; 17] = [
    "accept-encoding",
    "authorization",
    "cache-control",
    "cf-connecting-ip",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "surrogate-capability",
];

/// Returns whether no shared render carries the header, so that it cannot select a page. `name` is in lower case.
#[must_use]
pub fn is_never_varied(name: &str) -> bool {
    NEVER_VARIED.contains(&name)
}
