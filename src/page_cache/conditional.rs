//! Conditional requests to a stored page (RFC 9110 §13): a browser that has it already gets its head.

use http::{HeaderMap, HeaderValue, header};
use twox_hash::XxHash64;

use super::storable::date;

/// A strong `ETag` made from the body: its XXH64. Two bodies with one hash could hide a change from whoever has the old one.
#[must_use]
pub fn etag(body: &[u8]) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{:016x}\"", XxHash64::oneshot(0, body))).ok()
}

/// Whether the client that sent `request` has the page with the headers `stored` already.
///
/// `If-None-Match` counts alone where it stands (§13.2.2), and compares weakly: `W/"a"` is `"a"`.
#[must_use]
pub fn is_not_modified(request: &HeaderMap, stored: &HeaderMap) -> bool {
    if request.contains_key(header::IF_NONE_MATCH) {
        let Some(etag) = stored.get(header::ETAG).and_then(|etag| etag.to_str().ok()) else { return false };
        let lines = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
        // A comma may stand within an ETag: then the parts do not match, and the page is sent again.
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

/// Headers that describe the body, which a 304 does not have.
pub const OF_THE_BODY: [header::HeaderName; 4] =
    [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_browser_is_told_whether_its_copy_is_the_page() {
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
    fn the_etag_is_the_bodys() {
        assert_eq!(etag(b"a"), etag(b"a"));
        assert_ne!(etag(b"a"), etag(b"b"));
        assert_eq!(etag(b"").unwrap(), "\"ef46db3751d8e999\"");
    }
}
