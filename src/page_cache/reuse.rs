//! Whether a stored page is the answer to a request (RFC 9111 §4, §5.2.1; RFC 5861).

use http::HeaderMap;

use super::{cache_control::CacheControl, entry::Entry};
use crate::ports::time::Timestamp;

/// What a request wants of a cache.
#[derive(Debug, Default)]
pub struct Wish {
    control: CacheControl,
    /// `no-cache`, or `Pragma: no-cache` of old.
    validated: bool,
}

/// How a stored page is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is the answer.
    Fresh,
    /// It is the answer, and is rendered anew behind it.
    Stale,
    /// The origin is asked first. Why, as RFC 9211 names it (§2.2).
    Not(&'static str),
}

impl Wish {
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let control = CacheControl::of(headers);
        Self { validated: control.wants_validation(headers), control }
    }

    /// The client takes nothing that the origin must be asked for (§5.2.1.7).
    #[must_use]
    pub fn only_if_cached(&self) -> bool {
        self.control.has("only-if-cached")
    }

    /// The client wants nothing of it to be kept (§5.2.1.5).
    #[must_use]
    pub fn no_store(&self) -> bool {
        self.control.has("no-store")
    }

    /// Whether the client wants the origin's own word.
    #[must_use]
    pub const fn is_validated(&self) -> bool {
        self.validated
    }

    /// How `entry` may be used `now`.
    #[must_use]
    pub fn reuse(&self, entry: &Entry, now: Timestamp) -> Reuse {
        let age = entry.age(now);
        let left = entry.fresh_until.since(now).as_secs();
        let too_old = self.control.seconds("max-age").is_some_and(|most| age > most || most == 0);
        if self.validated || too_old || self.control.seconds("min-fresh").is_some_and(|least| left < least) {
            return Reuse::Not("request");
        }
        if entry.is_fresh(now) {
            return Reuse::Fresh;
        }
        let staleness = now.since(entry.fresh_until).as_secs();
        let accepted = self.control.max_stale().is_some_and(|most| staleness <= most);
        if now < entry.stale_until || accepted && !entry.strict { Reuse::Stale } else { Reuse::Not("stale") }
    }

    /// Whether `entry` may stand in for an origin that failed with an answer, or (`silent`) gave none (§4.2.4, RFC 5861 §4).
    #[must_use]
    pub fn stands_in(&self, entry: &Entry, silent: bool, now: Timestamp) -> bool {
        let fresh = entry.is_fresh(now) && !self.validated;
        let wanted = self.control.seconds("stale-if-error").map_or(0, |seconds| seconds.saturating_mul(1000));
        let asked_for = now.since(entry.fresh_until).as_millis() < u128::from(wanted);
        fresh || now < entry.error_until || !entry.strict && (silent || asked_for)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderValue, header};

    use super::{super::entry::tests::entry, *};

    fn wish(lines: &[&'static str]) -> Wish {
        let line = |line: &&'static str| (header::CACHE_CONTROL, HeaderValue::from_static(line));
        Wish::of(&lines.iter().map(line).collect())
    }

    /// `control` of a request for a page that is 300 s fresh, then 60 s stale, `age` seconds after it was stored.
    fn reuse(control: &'static str, age: u64) -> Reuse {
        let entry = entry(b"", Vec::new());
        wish(&[control]).reuse(&entry, entry.stored + Duration::from_secs(age))
    }

    // §4.2, RFC 5861 §3
    #[test]
    fn a_page_is_fresh_then_stale_then_asked_about() {
        for (age, expected) in [
            (0, Reuse::Fresh),
            (299, Reuse::Fresh),
            (300, Reuse::Stale),
            (359, Reuse::Stale),
            (360, Reuse::Not("stale")),
        ] {
            assert_eq!(reuse("", age), expected, "{age}");
        }
    }

    // §5.2.1
    #[test]
    fn a_request_says_what_it_takes() {
        for (control, age, expected) in [
            ("max-age=10", 10, Reuse::Fresh),
            ("max-age=10", 11, Reuse::Not("request")),
            ("max-age=0", 0, Reuse::Not("request")),
            ("max-age=600", 310, Reuse::Stale),
            ("min-fresh=100", 200, Reuse::Fresh),
            ("min-fresh=100", 201, Reuse::Not("request")),
            ("min-fresh=1", 310, Reuse::Not("request")),
            ("no-cache", 1, Reuse::Not("request")),
            ("NO-CACHE, max-stale", 1, Reuse::Not("request")),
            ("max-stale", 800, Reuse::Stale),
            ("max-stale=100", 400, Reuse::Stale),
            ("max-stale=99", 400, Reuse::Not("stale")),
            ("nothing-to-see-here", 0, Reuse::Fresh),
        ] {
            assert_eq!(reuse(control, age), expected, "{control} after {age} s");
        }
        let mut strict = entry(b"", Vec::new());
        (strict.strict, strict.stale_until) = (true, strict.fresh_until);
        assert_eq!(wish(&["max-stale"]).reuse(&strict, strict.fresh_until), Reuse::Not("stale"));
    }

    // §5.4
    #[test]
    fn pragma_counts_where_cache_control_says_nothing() {
        let pragma = (header::PRAGMA, HeaderValue::from_static("no-cache"));
        assert!(Wish::of(&[pragma.clone()].into_iter().collect()).is_validated());
        let both = [pragma, (header::CACHE_CONTROL, HeaderValue::from_static("max-age=5"))];
        assert!(!Wish::of(&both.into_iter().collect()).is_validated());
    }

    // §4.2.4, RFC 5861 §4: 30 s for an error
    #[test]
    fn a_stale_page_stands_in_where_it_may() {
        let mut entry = entry(b"", Vec::new());
        let stands_in = |entry: &Entry, control, silent, staleness| {
            wish(&[control]).stands_in(entry, silent, entry.fresh_until + Duration::from_secs(staleness))
        };
        assert!(stands_in(&entry, "", false, 29) && !stands_in(&entry, "", false, 30));
        assert!(stands_in(&entry, "", true, 500), "disconnected");
        assert!(
            stands_in(&entry, "stale-if-error=100", false, 99) && !stands_in(&entry, "stale-if-error=100", false, 100)
        );
        (entry.strict, entry.error_until) = (true, entry.fresh_until);
        assert!(!stands_in(&entry, "stale-if-error=100", true, 1), "must-revalidate");
    }
}
