//! `Cache-Status` (RFC 9211): what the cache did for an answer, and why.

use std::fmt;

use http::{HeaderName, HeaderValue};

use super::{admission::Pass, entry::Entry};
use crate::{fetch::Response, time::Timestamp};

/// What the cache did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// The stored page was served; it stays fresh for `ttl` seconds, or is stale below zero.
    Hit { ttl: i64 },
    /// The page was rendered, and is being stored.
    Stored,
    /// The page was rendered. `detail` says why it is not stored.
    Miss { detail: &'static str },
    /// The cache had no part in it.
    Pass(Pass),
}

impl CacheStatus {
    /// A page from the cache.
    #[must_use]
    pub fn hit(entry: &Entry, now: Timestamp) -> Self {
        Self::Hit { ttl: entry.ttl(now) }
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
        match self {
            Self::Hit { ttl } => write!(f, "hit; ttl={ttl}"),
            Self::Stored => f.write_str("fwd=uri-miss; stored"),
            Self::Miss { detail } => write!(f, "fwd=uri-miss; detail={detail}"),
            Self::Pass(pass) => write!(f, "fwd={}; detail={}", pass.forward(), pass.detail()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_written_as_rfc_9211_says() {
        for (status, text) in [
            (CacheStatus::Hit { ttl: 299 }, "edgefront; hit; ttl=299"),
            (CacheStatus::Hit { ttl: -3 }, "edgefront; hit; ttl=-3"),
            (CacheStatus::Stored, "edgefront; fwd=uri-miss; stored"),
            (CacheStatus::Miss { detail: "set-cookie" }, "edgefront; fwd=uri-miss; detail=set-cookie"),
            (CacheStatus::Pass(Pass::RedisDown), "edgefront; fwd=bypass; detail=redis-down"),
            (CacheStatus::Pass(Pass::Header("range")), "edgefront; fwd=request; detail=range"),
        ] {
            assert_eq!(status.to_string(), text);
        }
    }
}
