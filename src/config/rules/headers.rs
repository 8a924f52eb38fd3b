//! The request headers that may select a page.

use http::HeaderName;

use crate::ports::header_names::{is_edge, is_hop_by_hop, is_of_proxies};

/// Headers that no shared render carries: they belong to one visitor, ask for less than the whole page, or are set by
/// edgefront.
const NEVER: [&str; 17] = [
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

/// Returns whether a header may select a page. All others belong to one visitor, describe the connection, or are set by
/// edgefront, so that no shared render carries them.
#[must_use]
pub fn may_select(name: &HeaderName) -> bool {
    let text = name.as_str();
    !NEVER.contains(&text) && !is_edge(name) && !is_of_proxies(name) && !is_hop_by_hop(text)
}
