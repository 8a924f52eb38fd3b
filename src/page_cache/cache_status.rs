//! `Cache-Status` (RFC 9211): what the cache did for an answer, and why.

use std::fmt;

use http::{HeaderName, HeaderValue};

use super::{admission::Pass, entry::Entry};
use crate::ports::{fetch::Response, time::Timestamp};

/// What the cache did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// The stored page was served; it stays fresh for `ttl` seconds, or is stale below zero. `detail` says why it was served
    /// although it is stale, if that was not planned.
    Hit { ttl: i64, detail: Option<&'static str> },
    /// The origin was asked.
    Forward {
        /// Why, as RFC 9211 names it (§2.2).
        why: &'static str,
        /// What it answered, where that is not what is served: 304.
        answered: Option<u16>,
        /// The answer is being stored.
        stored: bool,
        /// Somebody else asked, and this request got the same answer.
        collapsed: bool,
        /// Why it is not stored.
        detail: Option<&'static str>,
    },
}

impl CacheStatus {
    /// A page from the cache.
    #[must_use]
    pub fn hit(entry: &Entry, now: Timestamp) -> Self {
        Self::Hit { ttl: entry.ttl(now), detail: None }
    }

    /// A page from the cache that stands in, and why.
    #[must_use]
    pub fn stand_in(entry: &Entry, now: Timestamp, detail: &'static str) -> Self {
        Self::Hit { ttl: entry.ttl(now), detail: Some(detail) }
    }

    /// The cache had no part in it.
    #[must_use]
    pub const fn pass(pass: Pass) -> Self {
        Self::not_stored(pass.forward(), pass.detail())
    }

    /// The origin's answer, which is being stored.
    #[must_use]
    pub const fn stored(why: &'static str, answered: Option<u16>) -> Self {
        Self::Forward { why, answered, stored: true, collapsed: false, detail: None }
    }

    /// The origin's answer, and why it is not stored.
    #[must_use]
    pub const fn not_stored(why: &'static str, detail: &'static str) -> Self {
        Self::Forward { why, answered: None, stored: false, collapsed: false, detail: Some(detail) }
    }

    /// The origin's answer to another request that came at the same time.
    #[must_use]
    pub const fn collapsed(why: &'static str) -> Self {
        Self::Forward { why, answered: None, stored: false, collapsed: true, detail: None }
    }

    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit { .. } | Self::Forward { collapsed: true, .. })
    }

    /// Adds ourselves behind the caches that the answer has passed on its way to us. The response keeps the status as an
    /// extension, too, for whoever counts.
    pub fn append_to(self, response: &mut Response) {
        // The text is ASCII: it always is a header value.
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            response.headers_mut().append(HeaderName::from_static("cache-status"), value);
        }
        response.extensions_mut().insert(self);
    }
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("edgefront; ")?;
        let detail = match *self {
            Self::Hit { ttl, detail } => {
                write!(f, "hit; ttl={ttl}")?;
                detail
            }
            Self::Forward { why, answered, stored, collapsed, detail } => {
                write!(f, "fwd={why}")?;
                if let Some(status) = answered {
                    write!(f, "; fwd-status={status}")?;
                }
                f.write_str(if stored { "; stored" } else { "" })?;
                f.write_str(if collapsed { "; collapsed" } else { "" })?;
                detail
            }
        };
        detail.map_or(Ok(()), |detail| write!(f, "; detail={detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_written_as_rfc_9211_says() {
        for (status, text) in [
            (CacheStatus::Hit { ttl: 299, detail: None }, "edgefront; hit; ttl=299"),
            (CacheStatus::Hit { ttl: -3, detail: Some("origin-down") }, "edgefront; hit; ttl=-3; detail=origin-down"),
            (CacheStatus::stored("uri-miss", None), "edgefront; fwd=uri-miss; stored"),
            (CacheStatus::stored("stale", Some(304)), "edgefront; fwd=stale; fwd-status=304; stored"),
            (CacheStatus::collapsed("uri-miss"), "edgefront; fwd=uri-miss; collapsed"),
            (CacheStatus::not_stored("uri-miss", "set-cookie"), "edgefront; fwd=uri-miss; detail=set-cookie"),
            (CacheStatus::pass(Pass::RedisDown), "edgefront; fwd=bypass; detail=redis-down"),
            (CacheStatus::pass(Pass::Header("range")), "edgefront; fwd=request; detail=range"),
        ] {
            assert_eq!(status.to_string(), text);
        }
    }
}
