//! `Cache-Status` (RFC 9211): how the cache handled a request.

use std::fmt;

use http::HeaderName;

use super::{
    policy::{ForwardReason, Reason},
    stored_page::StoredPage,
};
use crate::{
    ports::{fetch::Response, header_names::append_text, time::Timestamp},
    proxy::esi::Processed,
};

/// The cache's handling of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// The stored page was served. `ttl` is its remaining freshness in seconds, negative if stale; `detail` is the
    /// reason to serve an expired page.
    Hit { ttl: i64, detail: Option<Reason> },
    /// The origin was asked.
    Forward {
        forward: ForwardReason,
        /// The origin's status, if another one is served: 304.
        status: Option<u16>,
        /// The response is being stored.
        stored: bool,
        /// Single flight: this request got the response to another request.
        collapsed: bool,
        /// The reason not to store the response.
        detail: Option<Reason>,
    },
}

impl CacheStatus {
    /// A page from the cache.
    #[must_use]
    pub fn hit(page: &StoredPage, now: Timestamp) -> Self {
        Self::Hit { ttl: page.ttl(now), detail: None }
    }

    /// A page from the cache, served although the origin or Redis should have been asked.
    #[must_use]
    pub fn fallback(page: &StoredPage, now: Timestamp, detail: Reason) -> Self {
        Self::Hit { ttl: page.ttl(now), detail: Some(detail) }
    }

    /// The request bypassed the cache.
    #[must_use]
    pub const fn bypass(reason: Reason) -> Self {
        Self::not_stored(reason.forward(), reason)
    }

    /// The origin's response, which is being stored.
    #[must_use]
    pub const fn stored(forward: ForwardReason, status: Option<u16>) -> Self {
        Self::Forward { forward, status, stored: true, collapsed: false, detail: None }
    }

    /// The origin's response, which is not stored.
    #[must_use]
    pub const fn not_stored(forward: ForwardReason, detail: Reason) -> Self {
        Self::Forward { forward, status: None, stored: false, collapsed: false, detail: Some(detail) }
    }

    /// The origin's response to a concurrent request.
    #[must_use]
    pub const fn collapsed(forward: ForwardReason) -> Self {
        Self::Forward { forward, status: None, stored: false, collapsed: true, detail: None }
    }

    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit { .. } | Self::Forward { collapsed: true, .. })
    }

    /// Returns whether Redis did not answer.
    #[must_use]
    pub const fn lacks_redis(self) -> bool {
        let (Self::Hit { detail, .. } | Self::Forward { detail, .. }) = self;
        matches!(detail, Some(Reason::RedisDown))
    }

    /// Appends the status behind those of the caches between the origin and edgefront (RFC 9211 §2). The response's
    /// extensions keep it for the traffic counters. If the origin's page was refused, the detail says so.
    pub fn append_to(mut self, response: &mut Response) {
        if let Self::Forward { stored, detail, .. } = &mut self
            && response.extensions().get() == Some(&Processed::Refused)
        {
            (*stored, *detail) = (false, Some(Reason::Esi));
        }
        append_text(response.headers_mut(), HeaderName::from_static("cache-status"), self.to_string());
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
            Self::Forward { forward, status, stored, collapsed, detail } => {
                write!(f, "fwd={}", forward.as_str())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={status}")?;
                }
                f.write_str(if stored { "; stored" } else { "" })?;
                f.write_str(if collapsed { "; collapsed" } else { "" })?;
                detail
            }
        };
        detail.map_or(Ok(()), |detail| write!(f, "; detail={}", detail.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_follows_rfc_9211() {
        for (status, text) in [
            (CacheStatus::Hit { ttl: 299, detail: None }, "edgefront; hit; ttl=299"),
            (
                CacheStatus::Hit { ttl: -3, detail: Some(Reason::OriginDown) },
                "edgefront; hit; ttl=-3; detail=origin-down",
            ),
            (CacheStatus::stored(ForwardReason::UriMiss, None), "edgefront; fwd=uri-miss; stored"),
            (CacheStatus::stored(ForwardReason::Stale, Some(304)), "edgefront; fwd=stale; fwd-status=304; stored"),
            (CacheStatus::collapsed(ForwardReason::UriMiss), "edgefront; fwd=uri-miss; collapsed"),
            (
                CacheStatus::not_stored(ForwardReason::UriMiss, Reason::SetCookie),
                "edgefront; fwd=uri-miss; detail=set-cookie",
            ),
            (CacheStatus::bypass(Reason::RedisDown), "edgefront; fwd=bypass; detail=redis-down"),
            (CacheStatus::bypass(Reason::RequestHeader("range")), "edgefront; fwd=request; detail=range"),
        ] {
            assert_eq!(status.to_string(), text);
        }
    }
}
