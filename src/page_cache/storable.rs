//! Which answers a shared cache may store, and how long one is fresh (RFC 9111 §3, §4.2; RFC 5861; RFC 9213).

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::cache_control::CacheControl;
use crate::{config::PageConfig, ports::time::Timestamp};

/// The longest that a page is kept, whatever the origin says: two days. A purge is remembered for twice as long.
pub const LONGEST: Duration = Duration::from_hours(48);

/// How long a stored answer may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// How old it was already when it arrived (§4.2.3).
    pub age: Duration,
    /// Fresh for so long from its arrival on. Zero: it is kept to be validated.
    pub fresh: Duration,
    /// After that, it may be served stale for so long while it is rendered anew.
    pub stale: Duration,
    /// After `fresh`, it may be served for so long where the origin fails.
    pub on_error: Duration,
    /// It is never served stale on our own account, and not for a client's `max-stale` either.
    pub strict: bool,
    /// Whether the origin chose `fresh`; otherwise it is `PAGE_TTL`.
    pub stated: bool,
    /// It is kept for so long from its arrival on.
    pub lives: Duration,
}

/// Why a compressed answer is not stored, as `Cache-Status` tells it.
pub const ENCODING: &str = "encoding";

/// Why an item's popularity does not let an answer in that says nothing of freshness; Ok for a page that is popular.
pub type Popularity = Result<(), &'static str>;

/// How long the answer may be served, which was asked for at `asked` and arrived at `arrived`.
///
/// # Errors
/// What forbids to store it.
pub fn freshness(
    status: StatusCode,
    headers: &HeaderMap,
    (asked, arrived): (Timestamp, Timestamp),
    popularity: Popularity,
    config: &PageConfig,
) -> Result<Freshness, &'static str> {
    let control = CacheControl::of_answer(headers);
    // A part is no page, and a 304 or an interim answer even less.
    if matches!(status.as_u16(), ..200 | 206 | 304) {
        return Err("status");
    }
    if headers.contains_key(header::SET_COOKIE) {
        return Err("set-cookie");
    }
    let must_understand = control.has("must-understand");
    if must_understand && !is_understood(status) {
        return Err("status");
    }
    // `private` with a list of fields counts like the one without (§5.2.2.7).
    if control.has("private") {
        return Err("private");
    }
    // §5.2.2.3: who understands the status does as the other directives say.
    if control.has("no-store") && !must_understand {
        return Err("no-store");
    }
    let age = age(headers, asked, arrived);
    let stated = stated(&control, headers, arrived);
    let always = control.has("no-cache");
    if stated.is_none() && !always {
        popularity?;
        if status != StatusCode::OK {
            return Err("status");
        }
    }
    let lifetime = if always { Duration::ZERO } else { stated.unwrap_or(config.ttl).min(LONGEST / 2) };
    let fresh = lifetime.saturating_sub(age);
    let never = always || ["must-revalidate", "proxy-revalidate"].into_iter().any(|name| control.has(name));
    let seconds = |name| control.seconds(name).map(Duration::from_secs);
    // Freshness that the origin chose is not ours to stretch (§4.2.4).
    let ours = if stated.is_some() { Duration::ZERO } else { config.stale };
    let [stale, on_error] = ["stale-while-revalidate", "stale-if-error"]
        .map(|name| if never { Duration::ZERO } else { seconds(name).unwrap_or(ours).min(LONGEST / 2) });
    // Behind its time it is good to be asked about, and to be served where there is no origin (§4.2.4): as long again as it was
    // fresh, at least a minute.
    let has_validator = headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
    let strict = never || control.has("s-maxage");
    let kept = match stated {
        _ if always => Duration::from_mins(1),
        Some(stated) => stated.clamp(Duration::from_mins(1), LONGEST / 2),
        None => Duration::ZERO,
    };
    let kept = if has_validator || !strict { kept } else { Duration::ZERO };
    if fresh.is_zero() && !(has_validator && (stated.is_some() || always)) {
        return Err(if always { "no-cache" } else { "not-fresh" });
    }
    // What the platform unpacks on its way can not be kept as it was. Nothing else forbids to store it: asked for as it is, it can be.
    if headers.get_all(header::CONTENT_ENCODING).iter().any(is_unpacked) {
        return Err(ENCODING);
    }
    let lives = fresh + stale.max(on_error).max(kept);
    Ok(Freshness { age, fresh, stale, on_error, strict, stated: stated.is_some() || always, lives })
}

/// The lifetime that the origin chose (§4.2.1).
fn stated(control: &CacheControl, headers: &HeaderMap, arrived: Timestamp) -> Option<Duration> {
    let seconds = control.seconds("s-maxage").or_else(|| control.seconds("max-age")).map(Duration::from_secs);
    // RFC 9213 §2.2: where the targeted field counts, `Expires` does not.
    seconds.or_else(|| if control.is_targeted() { None } else { until_expiry(headers, arrived) })
}

/// How old the answer is when it arrives (§4.2.3): by its `Date`, or by the `Age` that other caches say plus the way.
fn age(headers: &HeaderMap, asked: Timestamp, arrived: Timestamp) -> Duration {
    let date = headers.get(header::DATE).and_then(date).map(|date| Timestamp::from_millis(date * 1000));
    // HTTP's dates have no fraction, so a second may be lost on the way.
    let apparent = date.map_or(Duration::ZERO, |date| arrived.since(date + Duration::from_millis(999)));
    apparent.max(stated_age(headers) + arrived.since(asked))
}

/// `Age`: the first member of a list counts, and what is no number does not (§5.1).
fn stated_age(headers: &HeaderMap) -> Duration {
    let first = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.split(',').next());
    let digits = first.map(str::trim).filter(|age| !age.is_empty() && age.bytes().all(|byte| byte.is_ascii_digit()));
    Duration::from_secs(digits.map_or(0, |digits| digits.parse().map_or(1 << 31, |age: u64| age.min(1 << 31))))
}

/// Codings that the platform takes off a body when it is read.
fn is_unpacked(value: &HeaderValue) -> bool {
    let codings = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress"];
    let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    value.split(',').any(|coding| codings.contains(&coding.trim()))
}

/// The statuses whose caching we know (RFC 9110 §15).
fn is_understood(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 451 | 500..=505)
}

/// `Expires` - `Date` (§4.2.1). An `Expires` that is no date, such as `0`, or is given twice, has passed (§5.3).
fn until_expiry(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let mut lines = headers.get_all(header::EXPIRES).iter();
    let expires = date(lines.next()?).filter(|_| lines.next().is_none());
    let since = headers.get(header::DATE).and_then(date).unwrap_or_else(|| now.as_secs());
    Some(Duration::from_secs(expires.unwrap_or(0).saturating_sub(since)))
}

/// An HTTP date as Unix seconds.
pub(super) fn date(value: &HeaderValue) -> Option<u64> {
    let date = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    date.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    const NOW: u64 = 1_795_273_200; // Sat, 21 Nov 2026 15:00:00 GMT

    /// Header lines, one `name: value` in each.
    fn answer(status: u16, lines: &str, popularity: Popularity) -> Result<Freshness, &'static str> {
        let headers = lines
            .lines()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap()));
        let now = Timestamp::from_millis(NOW * 1000);
        let config = crate::config::tests::read(&[]).unwrap().page;
        freshness(StatusCode::from_u16(status).unwrap(), &headers.collect(), (now, now), popularity, &config)
    }

    fn read(status: u16, lines: &str) -> Result<Freshness, &'static str> {
        answer(status, lines, Ok(()))
    }

    fn seconds(lines: &str) -> (u64, u64) {
        let freshness = read(200, lines).unwrap();
        (freshness.fresh.as_secs(), freshness.stale.as_secs())
    }

    // D15; RFC 9111 §3
    #[test]
    fn what_is_not_for_everybody_is_not_stored() {
        for (status, lines, reason) in [
            (500, "", "status"),
            (404, "", "status"),
            (302, "location: /", "status"),
            (206, "content-range: bytes 0-1/2\ncache-control: max-age=60", "status"),
            (304, "cache-control: max-age=60", "status"),
            (599, "cache-control: max-age=60, must-understand", "status"),
            (200, "set-cookie: a=b\ncache-control: max-age=60", "set-cookie"),
            (200, "cache-control: max-age=60, no-store", "no-store"),
            (200, "cache-control: PRIVATE", "private"),
            (200, "cache-control: private=\"x\", max-age=60", "private"),
            (200, "cache-control: private\ncdn-cache-control: max-age=60, private", "private"),
            (200, "cache-control: max-age=60\ncache-control: no-cache", "no-cache"),
            (200, "cache-control: max-age=60\ncdn-cache-control: no-store", "no-store"),
            (200, "content-encoding: gzip\ncache-control: max-age=60", "encoding"),
            (200, "cache-control: max-age=0", "not-fresh"),
            (200, "cache-control: s-maxage=0, max-age=60", "not-fresh"),
            (200, "cache-control: max-age=60\nage: 60", "not-fresh"),
            (200, "expires: 0", "not-fresh"),
            (200, "expires: Sat, 21 Nov 2026 15:00:00 GMT\ndate: Sat, 21 Nov 2026 15:00:00 GMT", "not-fresh"),
        ] {
            assert_eq!(read(status, lines), Err(reason), "{status} {lines}");
        }
        assert_eq!(answer(200, "cache-control: public", Err("unpopular")), Err("unpopular"));
    }

    // §3: explicit freshness lets any final status in.
    #[test]
    fn a_status_with_stated_freshness_is_stored() {
        for status in [200, 203, 204, 301, 302, 307, 308, 404, 410, 451, 500, 503, 599] {
            let freshness = answer(status, "cache-control: max-age=60", Err("unpopular"));
            assert_eq!(freshness.map(|freshness| freshness.fresh.as_secs()), Ok(60), "{status}");
        }
        let understood = answer(404, "cache-control: max-age=60, no-store, must-understand", Err("unpopular"));
        assert_eq!(understood.map(|freshness| freshness.fresh.as_secs()), Ok(60));
    }

    #[test]
    fn the_origin_says_how_long_a_page_is_fresh_or_we_do() {
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

    // RFC 9213 §2.2
    #[test]
    fn the_word_to_the_network_wins() {
        assert_eq!(seconds("cache-control: no-store\ncdn-cache-control: max-age=60"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=1\nexpires: 0\ncdn-cache-control: max-age=60"), (60, 0));
        assert_eq!(read(200, "cache-control: no-store\ncdn-cache-control: max-age=\"60\""), Err("no-store"));
        assert_eq!(answer(200, "cache-control: max-age=60\ncdn-cache-control: foo", Err("no-item")), Err("no-item"));
    }

    // §4.2.3, §5.1
    #[test]
    fn an_answer_is_as_old_as_it_looks() {
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
        assert_eq!(read(200, "cache-control: max-age=100\nage: 99999999999999999999"), Err("not-fresh"));
    }

    // §4.3
    #[test]
    fn what_has_a_validator_is_kept_to_be_asked_about() {
        let validated = read(200, "cache-control: no-cache\netag: \"a\"").unwrap();
        assert_eq!((validated.fresh.as_secs(), validated.lives.as_secs(), validated.strict), (0, 60, true));
        let kept = read(200, "cache-control: max-age=600, must-revalidate\netag: \"a\"").unwrap();
        assert_eq!((kept.fresh.as_secs(), kept.lives.as_secs(), kept.strict), (600, 1200, true));
        let gone = read(200, "cache-control: max-age=600, must-revalidate").unwrap();
        assert_eq!(gone.lives.as_secs(), 600);
    }

    // RFC 5861 §4
    #[test]
    fn a_stale_page_may_stand_in_for_a_failing_origin() {
        assert_eq!(read(200, "").unwrap().on_error.as_secs(), 60);
        assert_eq!(read(200, "cache-control: max-age=60").unwrap().on_error.as_secs(), 0);
        assert_eq!(read(200, "cache-control: max-age=60, stale-if-error=500").unwrap().on_error.as_secs(), 500);
        assert_eq!(
            read(200, "cache-control: max-age=60, stale-if-error=5, must-revalidate").unwrap().on_error.as_secs(),
            0
        );
    }
}
