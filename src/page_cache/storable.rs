//! Which answers a shared cache may store, and how long one is fresh (RFC 9111 §3, §4.2). Only a plain 200 that is nobody's
//! own is stored.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::cache_control::CacheControl;
use crate::{config::PageConfig, time::Timestamp};

/// The longest that a page is kept, whatever the origin says: two days. A purge is remembered for as long.
pub const LONGEST: Duration = Duration::from_hours(48);

/// How long a stored answer may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// How old it was already when it arrived.
    pub age: Duration,
    /// Fresh for so long from its arrival on; never zero.
    pub fresh: Duration,
    /// After that, it may be served stale for so long while it is rendered anew.
    pub stale: Duration,
    /// Whether the origin chose `fresh`; otherwise it is `PAGE_TTL`.
    pub stated: bool,
}

/// How long the answer may be served.
///
/// # Errors
/// What forbids to store it.
pub fn freshness(
    status: StatusCode,
    headers: &HeaderMap,
    now: Timestamp,
    config: &PageConfig,
) -> Result<Freshness, &'static str> {
    let control = CacheControl::of(headers);
    if status != StatusCode::OK {
        return Err("status");
    }
    if headers.contains_key(header::SET_COOKIE) {
        return Err("set-cookie");
    }
    // `private` and `no-cache` with a list of fields count like those without (§5.2.2.4).
    if let Some(name) = ["no-store", "private", "no-cache"].into_iter().find(|name| control.has(name)) {
        return Err(name);
    }
    if !headers.get_all(header::VARY).iter().all(varies_by_encoding) {
        return Err("vary");
    }
    // The origin was asked for the page as it is: whatever else comes is not for everybody.
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
        || headers.contains_key(header::CONTENT_RANGE)
    {
        return Err("encoding");
    }
    let age = age(headers);
    let stated = control.seconds("s-maxage").or_else(|| control.seconds("max-age")).map(Duration::from_secs);
    let stated = stated.or_else(|| until_expiry(headers, now));
    let fresh = stated.unwrap_or(config.ttl).min(LONGEST / 2).saturating_sub(age);
    if fresh.is_zero() {
        return Err("not-fresh");
    }
    let stale = if ["must-revalidate", "proxy-revalidate"].into_iter().any(|name| control.has(name)) {
        Duration::ZERO
    } else if let Some(seconds) = control.seconds("stale-while-revalidate") {
        Duration::from_secs(seconds)
    } else if stated.is_some() {
        // Freshness that the origin chose is not ours to stretch (§4.2.4).
        Duration::ZERO
    } else {
        config.stale
    };
    Ok(Freshness { age, fresh, stale: stale.min(LONGEST / 2), stated: stated.is_some() })
}

fn varies_by_encoding(value: &HeaderValue) -> bool {
    let Ok(fields) = value.to_str() else { return false };
    fields.split(',').map(str::trim).all(|field| field.is_empty() || field.eq_ignore_ascii_case("accept-encoding"))
}

fn age(headers: &HeaderMap) -> Duration {
    let age = headers.get(header::AGE).and_then(|age| age.to_str().ok()).and_then(|age| age.trim().parse().ok());
    Duration::from_secs(age.unwrap_or(0))
}

/// `Expires` - `Date` (§4.2.1). An `Expires` that is no date, such as `0`, has passed (§5.3).
fn until_expiry(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let expires = date(headers.get(header::EXPIRES)?);
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

    fn config() -> PageConfig {
        PageConfig {
            ttl: Duration::from_mins(5),
            stale: Duration::from_mins(1),
            rank_limit: 10_000,
            max_bytes: 1 << 20,
            item_routes: crate::item_routes::ItemRoutes::default(),
        }
    }

    /// Header lines, one `name: value` in each.
    fn read(status: u16, lines: &str) -> Result<Freshness, &'static str> {
        let headers = lines
            .lines()
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap()));
        let now = Timestamp::from_millis(1_795_000_000_000);
        freshness(StatusCode::from_u16(status).unwrap(), &headers.collect(), now, &config())
    }

    fn seconds(lines: &str) -> (u64, u64) {
        let freshness = read(200, lines).unwrap();
        (freshness.fresh.as_secs(), freshness.stale.as_secs())
    }

    // D15
    #[test]
    fn only_a_plain_200_that_is_nobodys_own_is_stored() {
        for (status, lines, reason) in [
            (500, "", "status"),
            (404, "cache-control: max-age=60", "status"),
            (302, "location: /", "status"),
            (206, "content-range: bytes 0-1/2", "status"),
            (200, "set-cookie: a=b", "set-cookie"),
            (200, "cache-control: max-age=60, no-store", "no-store"),
            (200, "cache-control: PRIVATE", "private"),
            (200, "cache-control: private=\"x\", max-age=60", "private"),
            (200, "cache-control: max-age=60\ncache-control: no-cache", "no-cache"),
            (200, "vary: *", "vary"),
            (200, "vary: accept-encoding, cookie", "vary"),
            (200, "content-encoding: gzip", "encoding"),
            (200, "cache-control: max-age=0", "not-fresh"),
            (200, "cache-control: s-maxage=0, max-age=60", "not-fresh"),
            (200, "cache-control: max-age=60\nage: 60", "not-fresh"),
            (200, "expires: 0", "not-fresh"),
            (200, "expires: Sat, 21 Nov 2026 15:00:00 GMT\ndate: Sat, 21 Nov 2026 15:00:00 GMT", "not-fresh"),
        ] {
            assert_eq!(read(status, lines), Err(reason), "{status} {lines}");
        }
    }

    #[test]
    fn the_origin_says_how_long_a_page_is_fresh_or_we_do() {
        assert_eq!(seconds(""), (300, 60));
        assert_eq!(seconds("cache-control: public\nvary: Accept-Encoding"), (300, 60));
        assert_eq!(seconds("cache-control: max-age=60"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=60, s-maxage=10"), (10, 0));
        assert_eq!(seconds("cache-control: max-age=60, stale-while-revalidate=30\nage: 20"), (40, 30));
        assert_eq!(seconds("cache-control: must-revalidate"), (300, 0));
        assert_eq!(seconds("expires: Sat, 21 Nov 2026 15:01:00 GMT\ndate: Sat, 21 Nov 2026 15:00:00 GMT"), (60, 0));
        assert_eq!(seconds("cache-control: max-age=99999999999"), (86_400, 0));
    }
}
