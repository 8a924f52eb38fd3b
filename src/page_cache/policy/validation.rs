//! Validation of a stored response by the origin (RFC 9111 §4.3), and the update by its 304 (§3.2, §4.3.4).

use http::{HeaderMap, HeaderName, header};

/// The conditional headers for the origin, from the stored validators. `has_generated_etag`: the origin does not know the
/// `ETag`. None without a validator.
#[must_use]
pub fn conditions(stored: &HeaderMap, has_generated_etag: bool) -> Option<HeaderMap> {
    let mut conditions = HeaderMap::new();
    if let Some(etag) = stored.get(header::ETAG).filter(|_| !has_generated_etag) {
        conditions.insert(header::IF_NONE_MATCH, etag.clone());
    }
    if let Some(modified) = stored.get(header::LAST_MODIFIED) {
        conditions.insert(header::IF_MODIFIED_SINCE, modified.clone());
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Fields of a 304 that do not replace the stored ones: they describe the missing body or the 304 itself, or belong to
/// one visitor.
const KEPT: [HeaderName; 8] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    header::ETAG,
    header::SET_COOKIE,
    HeaderName::from_static("cache-status"),
];

/// Returns whether a response header may have the token of a session, by its name: `Cart-Token`, `vendure-auth-token`.
pub fn is_token(name: &HeaderName) -> bool {
    name.as_str().ends_with("-token")
}

/// The stored headers, updated by those of a 304. The old `Date` and `Age` are dropped.
#[must_use]
pub fn freshened(stored: &HeaderMap, not_modified: &HeaderMap) -> HeaderMap {
    let mut headers = stored.clone();
    headers.remove(header::DATE);
    headers.remove(header::AGE);
    // A token of a new session, such as `Cart-Token`, is for the visitor of this response only.
    let is_taken = |name: &&HeaderName| !KEPT.contains(name) && !is_token(name);
    for name in not_modified.keys().filter(is_taken) {
        headers.remove(name);
        for value in not_modified.get_all(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    // RFC 9111 §4.3.1
    #[test]
    fn the_origin_gets_its_own_validators_only() {
        assert_eq!(conditions(&HeaderMap::new(), false), None);
        assert_eq!(conditions(&headers(&[("etag", "\"ours\"")]), true), None);
        let stored = headers(&[("etag", "W/\"a\""), ("last-modified", "Sat, 21 Nov 2026 15:00:00 GMT")]);
        let both = [("if-none-match", "W/\"a\""), ("if-modified-since", "Sat, 21 Nov 2026 15:00:00 GMT")];
        assert_eq!(conditions(&stored, false), Some(headers(&both)));
    }

    // RFC 9111 §3.2
    #[test]
    fn a_304_updates_the_stored_headers() {
        let stored = [("x-a", "1"), ("x-b", "1"), ("content-length", "5"), ("date", "then"), ("content-type", "a/b")];
        let stored = headers(&stored);
        let not_modified = [
            ("x-b", "2"),
            ("x-b", "3"),
            ("content-length", "0"),
            ("set-cookie", "a=b"),
            ("cart-token", "c"),
            ("x-c", "4"),
        ];
        let expected =
            [("x-a", "1"), ("content-length", "5"), ("content-type", "a/b"), ("x-b", "2"), ("x-b", "3"), ("x-c", "4")];
        assert_eq!(freshened(&stored, &headers(&not_modified)), headers(&expected));
    }
}
