//! The reuse of a stored response for a request (RFC 9111 §4, §5.2.1; RFC 5861).

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::{cache_control::CacheControl, reason::ForwardReason};

/// The caching directives of a request.
#[derive(Debug, Default)]
pub struct RequestDirectives {
    control: CacheControl,
    /// `no-cache`, or the older `Pragma: no-cache`.
    wants_validation: bool,
}

/// A stored response at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredState {
    pub age: Duration,
    /// Time until the response becomes stale; None if it is stale.
    pub fresh_for: Option<Duration>,
    /// Time since the response became stale.
    pub staleness: Duration,
    /// `stale-while-revalidate` still holds.
    pub while_revalidate: bool,
    /// `stale-if-error` still holds.
    pub if_error: bool,
    /// See [`Freshness::strict`](super::freshness::Freshness::strict).
    pub strict: bool,
}

/// The permitted use of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It answers the request.
    Fresh,
    /// It answers the request and is revalidated after the response.
    Stale,
    /// The origin is asked first.
    Forward(ForwardReason),
}

impl RequestDirectives {
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let control = CacheControl::of(headers);
        Self { wants_validation: control.wants_validation(headers), control }
    }

    /// `only-if-cached`: the client does not want the origin to be asked (§5.2.1.7).
    #[must_use]
    pub fn only_if_cached(&self) -> bool {
        self.control.has("only-if-cached")
    }

    /// `no-store`: no cache may keep anything of the request or the response (§5.2.1.5).
    #[must_use]
    pub fn no_store(&self) -> bool {
        self.control.has("no-store")
    }

    /// Returns whether the client accepts no stored response, however fresh it is: a reload.
    #[must_use]
    pub fn is_reload(&self) -> bool {
        self.wants_validation || self.control.seconds("max-age") == Some(0)
    }

    /// The permitted use of `stored` for this request.
    #[must_use]
    pub fn reuse(&self, stored: &StoredState) -> Reuse {
        let age = stored.age.as_secs();
        let fresh_for = stored.fresh_for.unwrap_or_default().as_secs();
        let too_old = self.control.seconds("max-age").is_some_and(|limit| age > limit || limit == 0);
        if self.wants_validation || too_old || self.control.seconds("min-fresh").is_some_and(|least| fresh_for < least)
        {
            return Reuse::Forward(ForwardReason::Request);
        }
        if stored.fresh_for.is_some() {
            return Reuse::Fresh;
        }
        let staleness = stored.staleness.as_secs();
        let accepted = self.control.max_stale().is_some_and(|limit| staleness <= limit);
        if stored.while_revalidate || accepted && !stored.strict {
            Reuse::Stale
        } else {
            Reuse::Forward(ForwardReason::Stale)
        }
    }

    /// Returns whether `stored` may replace the response of an origin that failed (§4.2.4, RFC 5861 §4).
    /// `disconnected`: the origin sent no response at all.
    #[must_use]
    pub fn allows_on_error(&self, stored: &StoredState, disconnected: bool) -> bool {
        let fresh = stored.fresh_for.is_some() && !self.wants_validation;
        let accepted = self.control.seconds("stale-if-error").map_or(Duration::ZERO, Duration::from_secs);
        fresh || stored.if_error || !stored.strict && (disconnected || stored.staleness < accepted)
    }
}

/// Returns whether a response of the origin is a temporary failure: a server error, or 408, 425 or 429 (RFC 9110
/// §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
#[must_use]
pub fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// Returns whether the origin may have answered otherwise if it had known the visitor: a [failure](is_failure), or 401 or 403
/// (RFC 9110 §15.5.2, §15.5.4). A shop that cannot render a page without the visitor's address sends 500, for example.
#[must_use]
pub fn is_refusal(status: StatusCode) -> bool {
    is_failure(status) || matches!(status.as_u16(), 401 | 403)
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    fn directives(lines: &[&'static str]) -> RequestDirectives {
        let line = |line: &&'static str| (header::CACHE_CONTROL, HeaderValue::from_static(line));
        RequestDirectives::of(&lines.iter().map(line).collect())
    }

    /// A response `age` seconds after it was stored: fresh for 300 s, stale while revalidated for 60 s, stale if error
    /// for 30 s.
    fn stored(age: u64) -> StoredState {
        let staleness = age.saturating_sub(300);
        StoredState {
            age: Duration::from_secs(age),
            fresh_for: (age < 300).then(|| Duration::from_secs(300 - age)),
            staleness: Duration::from_secs(staleness),
            while_revalidate: age < 360,
            if_error: age < 330,
            strict: false,
        }
    }

    fn reuse(control: &'static str, age: u64) -> Reuse {
        directives(&[control]).reuse(&stored(age))
    }

    // §4.2, RFC 5861 §3
    #[test]
    fn a_response_is_fresh_then_stale_then_validated() {
        for (age, expected) in [
            (0, Reuse::Fresh),
            (299, Reuse::Fresh),
            (300, Reuse::Stale),
            (359, Reuse::Stale),
            (360, Reuse::Forward(ForwardReason::Stale)),
        ] {
            assert_eq!(reuse("", age), expected, "{age}");
        }
    }

    // §5.2.1
    #[test]
    fn request_directives_limit_the_reuse() {
        let request = Reuse::Forward(ForwardReason::Request);
        for (control, age, expected) in [
            ("max-age=10", 10, Reuse::Fresh),
            ("max-age=10", 11, request),
            ("max-age=0", 0, request),
            ("max-age=600", 310, Reuse::Stale),
            ("min-fresh=100", 200, Reuse::Fresh),
            ("min-fresh=100", 201, request),
            ("min-fresh=1", 310, request),
            ("no-cache", 1, request),
            ("NO-CACHE, max-stale", 1, request),
            ("max-stale", 800, Reuse::Stale),
            ("max-stale=100", 400, Reuse::Stale),
            ("max-stale=99", 400, Reuse::Forward(ForwardReason::Stale)),
            ("nothing-to-see-here", 0, Reuse::Fresh),
        ] {
            assert_eq!(reuse(control, age), expected, "{control} after {age} s");
        }
        let strict = StoredState { strict: true, while_revalidate: false, ..stored(300) };
        assert_eq!(directives(&["max-stale"]).reuse(&strict), Reuse::Forward(ForwardReason::Stale));
    }

    // §5.4
    #[test]
    fn pragma_counts_only_without_cache_control() {
        let pragma = (header::PRAGMA, HeaderValue::from_static("no-cache"));
        assert!(RequestDirectives::of(&[pragma.clone()].into_iter().collect()).is_reload());
        let both = [pragma, (header::CACHE_CONTROL, HeaderValue::from_static("max-age=5"))];
        assert!(!RequestDirectives::of(&both.into_iter().collect()).is_reload());
    }

    // §4.2.4, RFC 5861 §4
    #[test]
    fn a_stale_response_replaces_an_error_where_it_may() {
        let allows = |control, disconnected, staleness: u64| {
            directives(&[control]).allows_on_error(&stored(300 + staleness), disconnected)
        };
        assert!(allows("", false, 29) && !allows("", false, 30));
        assert!(allows("", true, 500), "disconnected");
        assert!(allows("stale-if-error=100", false, 99) && !allows("stale-if-error=100", false, 100));
        let strict = StoredState { strict: true, if_error: false, ..stored(301) };
        assert!(!directives(&["stale-if-error=100"]).allows_on_error(&strict, true), "must-revalidate");
    }
}
