//! Conditional requests (RFC 9110 §13): a client that has the stored response already gets 304.

use http::{HeaderMap, HeaderValue, header};
use twox_hash::XxHash64;

use super::freshness::date;

/// A strong `ETag`: XXH64 of the body. A hash collision would hide a change from a client with the older body.
#[must_use]
pub fn etag(body: &[u8]) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{:016x}\"", XxHash64::oneshot(0, body))).ok()
}

/// Returns whether the client that sent `request` has the response with the headers `stored` already.
///
/// `If-None-Match` takes precedence (§13.2.2) and compares weakly: `W/"a"` equals `"a"`.
#[must_use]
pub fn is_not_modified(request: &HeaderMap, stored: &HeaderMap) -> bool {
    if request.contains_key(header::IF_NONE_MATCH) {
        let Some(etag) = stored.get(header::ETAG).and_then(|etag| etag.to_str().ok()) else { return false };
        let lines = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
        // An ETag may contain a comma. Its parts then match nothing, and the response is sent again.
        return lines
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .any(|own| own == "*" || opaque(own) == opaque(etag));
    }
    let since = request.get(header::IF_MODIFIED_SINCE).and_then(date);
    let modified = stored.get(header::LAST_MODIFIED).and_then(date);
    since.zip(modified).is_some_and(|(since, modified)| modified <= since)
}

fn opaque(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

/// Digests of the bytes that a response has. A part of a page has others (RFC 9530 §2).
pub const OF_CONTENT: [&str; 2] = ["content-digest", "content-md5"];

/// Headers that describe the body, besides [`OF_CONTENT`]; a 304 has none.
pub const BODY_HEADERS: [&str; 4] = ["content-length", "content-type", "content-encoding", "content-language"];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_matching_validator_gives_304() {
        let stored = [("etag", "\"a\""), ("last-modified", "Sat, 21 Nov 2026 15:00:00 GMT")];
        for (request, not_modified) in [
            (("if-none-match", "\"a\""), true),
            (("if-none-match", "\"b\", W/\"a\""), true),
            (("if-none-match", "*"), true),
            (("if-none-match", "\"b\""), false),
            (("if-none-match", "a"), false),
            (("if-none-match", ""), false),
            (("if-modified-since", "Sat, 21 Nov 2026 15:00:00 GMT"), true),
            (("if-modified-since", "Sat, 21 Nov 2026 14:59:59 GMT"), false),
            (("if-modified-since", "yesterday"), false),
        ] {
            assert_eq!(is_not_modified(&headers(&[request]), &headers(&stored)), not_modified, "{request:?}");
        }
        let both = [("if-none-match", "\"b\""), ("if-modified-since", "Sat, 21 Nov 2026 15:00:00 GMT")];
        assert!(!is_not_modified(&headers(&both), &headers(&stored)));
        assert!(!is_not_modified(&headers(&[]), &headers(&stored)));
    }

    #[test]
    fn the_etag_depends_on_the_body_only() {
        assert_eq!(etag(b"a"), etag(b"a"));
        assert_ne!(etag(b"a"), etag(b"b"));
        assert_eq!(etag(b"").unwrap(), "\"ef46db3751d8e999\"");
    }
}
