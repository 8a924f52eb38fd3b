//! The responses that a shared cache may store, and their freshness lifetimes (RFC 9111 §3, §4.2; RFC 5861; RFC 9213).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{cache_control::CacheControl, reason::Reason};

/// A response is kept for at most two days, even if the origin allows more. A purge mark lives twice as long.
pub const LONGEST: Duration = Duration::from_hours(48);

/// The times for which a stored response may be served. Every duration but `age` counts from the response's arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The response's age when it arrived (RFC 9111 §4.2.3).
    pub age: Duration,
    /// Time as a fresh response. Zero: the response is kept for validation only.
    pub fresh: Duration,
    /// Time after `fresh` during which the response may be served stale while it is revalidated.
    pub stale: Duration,
    /// Time after `fresh` during which the response may be served if the origin fails.
    pub on_error: Duration,
    /// The response is not served stale beyond `stale` and `on_error`, not even for a client's `max-stale`.
    pub strict: bool,
    /// The origin stated the freshness; otherwise it is [`Heuristic::fresh`].
    pub stated: bool,
    /// Time until the response is deleted.
    pub lives: Duration,
}

impl Freshness {
    /// Shortens a freshness that the origin did not state by up to a tenth, by `fraction` from 0 to 1. Pages that were
    /// stored together must not expire together.
    #[must_use]
    pub fn jittered(self, fraction: f64) -> Self {
        if self.stated {
            return self;
        }
        let fresh = self.fresh.mul_f64(1.0 - 0.1 * fraction);
        Self { fresh, lives: self.lives.saturating_sub(self.fresh.saturating_sub(fresh)), ..self }
    }
}

/// `Ok` if popularity admits a response that states no freshness, else the reason.
pub type Popularity = Result<(), Reason>;

/// The freshness of a response whose origin states none (RFC 9111 §4.2.2).
#[derive(Debug, Clone, Copy)]
pub struct Heuristic {
    pub popularity: Popularity,
    pub fresh: Duration,
    pub stale: Duration,
    /// It also replaces the directives of an origin that forbids to store the response: the operator knows that the page is
    /// shared (`PATHS_SHARED`).
    pub overrides: bool,
}

/// The arrival of a response, and the origin's delay.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: SystemTime,
    pub delay: Duration,
}

/// Decides the times for which a response may be served.
///
/// # Errors
/// The reason that forbids to store it.
pub fn freshness(
    status: StatusCode,
    headers: &HeaderMap,
    arrival: Arrival,
    heuristic: &Heuristic,
) -> Result<Freshness, Reason> {
    let control = CacheControl::of_response(headers);
    let is_replaced = heuristic.overrides && forbids(&control, headers, arrival.at);
    let control = if is_replaced { CacheControl::REPLACED } else { control };
    check_status_and_cookies(status, headers, &control)?;
    let stated = stated(&control, headers, arrival.at);
    let no_cache = control.has("no-cache");
    if stated.is_none() && !no_cache {
        heuristic.popularity?;
        // Such a response answers one visitor's action, such as a logout.
        if headers.contains_key("clear-site-data") {
            return Err(Reason::Personal);
        }
        if status != StatusCode::OK {
            return Err(Reason::Status);
        }
    }
    let age = age(headers, arrival);
    let lifetime = if no_cache { Duration::ZERO } else { stated.unwrap_or(heuristic.fresh).min(LONGEST / 2) };
    let fresh = lifetime.saturating_sub(age);
    let revalidated = no_cache || control.has("must-revalidate") || control.has("proxy-revalidate");
    // The cache must not stretch a freshness that the origin stated (§4.2.4).
    let default = if stated.is_some() { Duration::ZERO } else { heuristic.stale };
    let [stale, on_error] = ["stale-while-revalidate", "stale-if-error"].map(|name| {
        let seconds = control.seconds(name).map(Duration::from_secs);
        if revalidated { Duration::ZERO } else { seconds.unwrap_or(default).min(LONGEST / 2) }
    });
    // A stale response can still be validated, and can stand in for a failing origin (§4.2.4). It is kept for a second
    // lifetime, and at least for a minute.
    let has_validator = headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
    let strict = revalidated || control.has("s-maxage");
    let kept = match stated {
        _ if no_cache => Duration::from_mins(1),
        Some(stated) => stated.clamp(Duration::from_mins(1), LONGEST / 2),
        None => Duration::ZERO,
    };
    let kept = if has_validator || !strict { kept } else { Duration::ZERO };
    if fresh.is_zero() && !(has_validator && (stated.is_some() || no_cache)) {
        return Err(if no_cache { Reason::NoCache } else { Reason::NotFresh });
    }
    // The platform decodes such a body, so the bytes cannot be kept as they came. The check comes last: without the
    // coding the response could be stored.
    if headers.get_all(header::CONTENT_ENCODING).iter().any(is_decoded_by_platform) {
        return Err(Reason::Encoding);
    }
    let lives = fresh + stale.max(on_error).max(kept);
    Ok(Freshness { age, fresh, stale, on_error, strict, stated: stated.is_some() || no_cache, lives })
}

/// Returns whether the origin declared the response shared. At `PATHS_SHARED` (`is_overridden`), a declaration does not count
/// beside directives that the rule overrides. `arrived` replaces a missing `Date`.
#[must_use]
pub fn is_declared_shared(headers: &HeaderMap, arrived: SystemTime, is_overridden: bool) -> bool {
    let control = CacheControl::of_response(headers);
    control.is_declared_shared() && !(is_overridden && forbids(&control, headers, arrived))
}

/// Returns whether each request must validate the response: the origin states no lifetime above 0. At `PATHS_SHARED`
/// (`is_overridden`), only `CDN-Cache-Control` counts.
#[must_use]
pub fn is_never_fresh(headers: &HeaderMap, is_overridden: bool) -> bool {
    let control = CacheControl::of_response(headers);
    if is_overridden && !control.is_targeted() {
        return false;
    }
    let seconds = control.seconds("s-maxage").or_else(|| control.seconds("max-age"));
    control.has("no-cache") || seconds == Some(0)
}

/// Returns whether the origin forbids caches to answer with the response. `CDN-Cache-Control` addresses this cache, so no rule
/// replaces it.
fn forbids(control: &CacheControl, headers: &HeaderMap, arrived: SystemTime) -> bool {
    let is_restricted = || ["private", "no-store", "no-cache"].iter().any(|name| control.has(name));
    !control.is_targeted() && (is_restricted() || stated(control, headers, arrived).is_some_and(|time| time.is_zero()))
}

/// Rules that do not depend on the freshness (§3).
fn check_status_and_cookies(status: StatusCode, headers: &HeaderMap, control: &CacheControl) -> Result<(), Reason> {
    // Partial, not modified and interim responses are not complete.
    if matches!(status.as_u16(), ..200 | 206 | 304) {
        return Err(Reason::Status);
    }
    if headers.contains_key(header::SET_COOKIE) {
        return Err(Reason::SetCookie);
    }
    // It has no end, and each client gets its own.
    if headers.get(header::CONTENT_TYPE).is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream")) {
        return Err(Reason::Personal);
    }
    let must_understand = control.has("must-understand");
    if must_understand && !is_understood(status) {
        return Err(Reason::Status);
    }
    // `private` with a list of fields counts as `private` (§5.2.2.7).
    if control.has("private") {
        return Err(Reason::Private);
    }
    // A cache that understands the status ignores `no-store` beside `must-understand` (§5.2.2.3).
    if control.has("no-store") && !must_understand {
        return Err(Reason::NoStore);
    }
    Ok(())
}

/// The lifetime that the origin stated (§4.2.1).
fn stated(control: &CacheControl, headers: &HeaderMap, arrived: SystemTime) -> Option<Duration> {
    let seconds = control.seconds("s-maxage").or_else(|| control.seconds("max-age")).map(Duration::from_secs);
    // `Expires` does not count beside a targeted field (RFC 9213 §2.2).
    seconds.or_else(|| if control.is_targeted() { None } else { until_expiry(headers, arrived) })
}

/// The age on arrival (§4.2.3): from `Date`, or from `Age` plus the delay.
fn age(headers: &HeaderMap, arrival: Arrival) -> Duration {
    // HTTP dates have no fraction, so up to a second is rounding.
    let apparent = headers.get(header::DATE).and_then(date).map_or(Duration::ZERO, |date| {
        arrival.at.duration_since(date + Duration::from_millis(999)).unwrap_or_default()
    });
    apparent.max(stated_age(headers) + arrival.delay)
}

/// `Age`: the first member of a list counts; an invalid number is ignored (§5.1).
fn stated_age(headers: &HeaderMap) -> Duration {
    let first = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.split(',').next());
    let digits = first.map(str::trim).filter(|age| !age.is_empty() && age.bytes().all(|byte| byte.is_ascii_digit()));
    Duration::from_secs(digits.map_or(0, |digits| digits.parse().map_or(1 << 31, |age: u64| age.min(1 << 31))))
}

/// Content codings that the platform removes from a body.
fn is_decoded_by_platform(value: &HeaderValue) -> bool {
    let codings = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress"];
    let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    value.split(',').any(|coding| codings.contains(&coding.trim()))
}

/// Statuses with known caching rules (RFC 9110 §15).
fn is_understood(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 451 | 500..=505)
}

/// `Expires` - `Date` (§4.2.1). An invalid or repeated `Expires`, such as `0`, has passed (§5.3).
fn until_expiry(headers: &HeaderMap, arrived: SystemTime) -> Option<Duration> {
    let mut lines = headers.get_all(header::EXPIRES).iter();
    let expires = date(lines.next()?).filter(|_| lines.next().is_none());
    let since = headers.get(header::DATE).and_then(date).unwrap_or(arrived);
    Some(expires.unwrap_or(UNIX_EPOCH).duration_since(since).unwrap_or_default())
}

/// Parses an HTTP date (RFC 9110 §5.6.7).
pub(super) fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    const NOW: u64 = 1_795_273_200; // Sat, 21 Nov 2026 15:00:00 GMT

    /// The freshness of a response with header lines `name: value`.
    fn judge(status: u16, lines: &str, popularity: Popularity) -> Result<Freshness, Reason> {
        judge_with(status, lines, popularity, false)
    }

    fn judge_with(status: u16, lines: &str, popularity: Popularity, overrides: bool) -> Result<Freshness, Reason> {
        let headers = lines
            .lines()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap()));
        let arrival = Arrival { at: UNIX_EPOCH + Duration::from_secs(NOW), delay: Duration::ZERO };
        let heuristic =
            Heuristic { popularity, fresh: Duration::from_mins(5), stale: Duration::from_mins(1), overrides };
        freshness(StatusCode::from_u16(status).unwrap(), &headers.collect(), arrival, &heuristic)
    }

    fn read(status: u16, lines: &str) -> Result<Freshness, Reason> {
        judge(status, lines, Ok(()))
    }

    fn seconds(lines: &str) -> (u64, u64) {
        let freshness = read(200, lines).unwrap();
        (freshness.fresh.as_secs(), freshness.stale.as_secs())
    }

    // RFC 9111 §3
    #[test]
    fn a_response_that_is_not_shared_is_not_stored() {
        for (status, lines, reason) in [
            (500, "", Reason::Status),
            (404, "", Reason::Status),
            (302, "location: /", Reason::Status),
            (206, "content-range: bytes 0-1/2\ncache-control: max-age=60", Reason::Status),
            (304, "cache-control: max-age=60", Reason::Status),
            (599, "cache-control: max-age=60, must-understand", Reason::Status),
            (200, "set-cookie: a=b\ncache-control: max-age=60", Reason::SetCookie),
            (200, "cache-control: max-age=60, no-store", Reason::NoStore),
            (200, "clear-site-data: \"cookies\"", Reason::Personal),
            (200, "cache-control: PRIVATE", Reason::Private),
            (200, "cache-control: private=\"x\", max-age=60", Reason::Private),
            (200, "cache-control: private\ncdn-cache-control: max-age=60, private", Reason::Private),
            (200, "cache-control: max-age=60\ncache-control: no-cache", Reason::NoCache),
            (200, "cache-control: max-age=60\ncdn-cache-control: no-store", Reason::NoStore),
            (200, "content-encoding: gzip\ncache-control: max-age=60", Reason::Encoding),
            (200, "cache-control: max-age=0", Reason::NotFresh),
            (200, "cache-control: s-maxage=0, max-age=60", Reason::NotFresh),
            (200, "cache-control: max-age=60\nage: 60", Reason::NotFresh),
            (200, "expires: 0", Reason::NotFresh),
            (200, "expires: Sat, 21 Nov 2026 15:00:00 GMT\ndate: Sat, 21 Nov 2026 15:00:00 GMT", Reason::NotFresh),
        ] {
            assert_eq!(read(status, lines), Err(reason), "{status} {lines}");
        }
        assert_eq!(judge(200, "cache-control: public", Err(Reason::Unpopular)), Err(Reason::Unpopular));
    }

    // §3: explicit freshness lets any final status in.
    #[test]
    fn a_status_with_stated_freshness_is_stored() {
        for status in [200, 203, 204, 301, 302, 307, 308, 404, 410, 451, 500, 503, 599] {
            let freshness = judge(status, "cache-control: max-age=60", Err(Reason::Unpopular));
            assert_eq!(freshness.map(|freshness| freshness.fresh.as_secs()), Ok(60), "{status}");
        }
        let understood = judge(404, "cache-control: max-age=60, no-store, must-understand", Err(Reason::Unpopular));
        assert_eq!(understood.map(|freshness| freshness.fresh.as_secs()), Ok(60));
    }

    #[test]
    fn stated_freshness_wins_over_the_heuristic() {
        assert_eq!(seconds(""), (300, 60));
        assert_eq!(seconds("cache-control: public\nvary: Accept-Encoding"), (300, 60));
        assert_eq!(seconds("cache-control: max-age=60"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=60, s-maxage=10"), (10, 0));
        assert_eq!(seconds("cache-control: max-age=60, stale-while-revalidate=30\nage: 20"), (40, 30));
        assert_eq!(seconds("cache-control: s-maxage=60, stale-while-revalidate=30"), (60, 30));
        assert_eq!(seconds("cache-control: max-age=60, stale-while-revalidate=30, must-revalidate"), (60, 0));
        assert_eq!(seconds("cache-control: must-revalidate"), (300, 0));
        assert_eq!(seconds("expires: Sat, 21 Nov 2026 15:01:00 GMT\ndate: Sat, 21 Nov 2026 15:00:00 GMT"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=99999999999"), (86_400, 0));
    }

    #[test]
    fn a_rule_overrides_an_origin_that_forbids_to_store() {
        let seconds = |lines| judge_with(200, lines, Ok(()), true).map(|freshness| freshness.fresh.as_secs());
        for (lines, expected) in [
            ("", Ok(300)),
            ("cache-control: no-store, no-cache, must-revalidate\nexpires: Thu, 19 Nov 1981 08:52:00 GMT", Ok(300)),
            ("cache-control: private, max-age=600", Ok(300)),
            ("cache-control: max-age=0, must-revalidate\netag: \"a\"", Ok(300)),
            ("expires: 0", Ok(300)),
            ("cache-control: max-age=60", Ok(60)),
            ("cache-control: s-maxage=60\nage: 70", Err(Reason::NotFresh)),
            ("cache-control: no-store\nset-cookie: a=b", Err(Reason::SetCookie)),
            ("cdn-cache-control: no-store", Err(Reason::NoStore)),
            ("cache-control: no-store\ncdn-cache-control: max-age=0", Err(Reason::NotFresh)),
        ] {
            assert_eq!(seconds(lines), expected, "{lines}");
        }
        let of_visitor = judge_with(200, "cache-control: no-store", Err(Reason::Cookie), true);
        assert_eq!(of_visitor, Err(Reason::Cookie), "a visitor's own response is never stored");
        assert_eq!(judge_with(404, "cache-control: no-store", Ok(()), true), Err(Reason::Status));
    }

    // RFC 9213 §2.2
    #[test]
    fn cdn_cache_control_wins_over_cache_control() {
        assert_eq!(seconds("cache-control: no-store\ncdn-cache-control: max-age=60"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=1\nexpires: 0\ncdn-cache-control: max-age=60"), (60, 0));
        assert_eq!(read(200, "cache-control: no-store\ncdn-cache-control: max-age=\"60\""), Err(Reason::NoStore));
        assert_eq!(
            judge(200, "cache-control: max-age=60\ncdn-cache-control: foo", Err(Reason::NoItem)),
            Err(Reason::NoItem)
        );
    }

    // §4.2.3, §5.1
    #[test]
    fn age_is_the_larger_of_apparent_and_stated_age() {
        for (lines, fresh) in [
            ("age: 20", 80),
            ("age: 20, 0", 80),
            ("age: 0\nage: 20", 100),
            ("age: abc", 100),
            ("age: -7", 100),
            ("age: 7.0", 100),
            ("date: Sat, 21 Nov 2026 14:59:50 GMT", 90),
            ("date: Sat, 21 Nov 2026 14:59:50 GMT\nage: 20", 80),
            ("date: Sat, 21 Nov 2026 15:10:00 GMT", 100),
            ("date: yesterday", 100),
        ] {
            assert_eq!(seconds(&format!("cache-control: max-age=100\n{lines}")).0, fresh, "{lines}");
        }
        assert_eq!(read(200, "cache-control: max-age=100\nage: 99999999999999999999"), Err(Reason::NotFresh));
    }

    // §4.3
    #[test]
    fn a_response_with_a_validator_is_kept_for_validation() {
        let validated = read(200, "cache-control: no-cache\netag: \"a\"").unwrap();
        assert_eq!((validated.fresh.as_secs(), validated.lives.as_secs(), validated.strict), (0, 60, true));
        let kept = read(200, "cache-control: max-age=600, must-revalidate\netag: \"a\"").unwrap();
        assert_eq!((kept.fresh.as_secs(), kept.lives.as_secs(), kept.strict), (600, 1200, true));
        let gone = read(200, "cache-control: max-age=600, must-revalidate").unwrap();
        assert_eq!(gone.lives.as_secs(), 600);
    }

    // RFC 5861 §4
    #[test]
    fn stale_if_error_extends_the_use_of_a_response() {
        assert_eq!(read(200, "").unwrap().on_error.as_secs(), 60);
        assert_eq!(read(200, "cache-control: max-age=60").unwrap().on_error.as_secs(), 0);
        assert_eq!(read(200, "cache-control: max-age=60, stale-if-error=500").unwrap().on_error.as_secs(), 500);
        assert_eq!(
            read(200, "cache-control: max-age=60, stale-if-error=5, must-revalidate").unwrap().on_error.as_secs(),
            0
        );
    }
}
