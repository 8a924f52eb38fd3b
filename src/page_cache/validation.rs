//! Asks the origin whether a stored page still holds (RFC 9111 §4.3), and takes its 304 for an answer (§3.2, §4.3.4).

use http::{HeaderMap, HeaderName, header};

use super::entry::Entry;

/// The conditions to ask with: the stored page's validators, as the origin gave them. None if it gave none.
#[must_use]
pub fn conditions(entry: &Entry) -> Option<HeaderMap> {
    let mut conditions = HeaderMap::new();
    if let Some(etag) = entry.headers.get(header::ETAG).filter(|_| !entry.own_etag) {
        conditions.insert(header::IF_NONE_MATCH, etag.clone());
    }
    if let Some(modified) = entry.headers.get(header::LAST_MODIFIED) {
        conditions.insert(header::IF_MODIFIED_SINCE, modified.clone());
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Fields of a 304 that do not replace the stored ones: they describe bytes that did not come, or the 304's own way. A cookie is
/// somebody's.
const KEPT: [HeaderName; 7] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    HeaderName::from_static("content-md5"),
    header::ETAG,
    header::SET_COOKIE,
    HeaderName::from_static("cache-status"),
];

/// The stored headers, brought up to date by those of a 304. What only the old answer said of its own age is gone.
#[must_use]
pub fn freshened(stored: &HeaderMap, not_modified: &HeaderMap) -> HeaderMap {
    let mut headers = stored.clone();
    headers.remove(header::DATE);
    headers.remove(header::AGE);
    for name in not_modified.keys().filter(|name| !KEPT.contains(name)) {
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

    use super::{super::entry::tests::entry, *};

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    // RFC 9111 §4.3.1
    #[test]
    fn the_origin_is_asked_with_its_own_validators() {
        let mut entry = entry(b"", Vec::new());
        assert_eq!(conditions(&entry), None);
        entry.headers = headers(&[("etag", "\"ours\"")]);
        assert_eq!(conditions(&entry), None, "the origin does not know ours");
        entry.headers = headers(&[("etag", "W/\"a\""), ("last-modified", "Sat, 21 Nov 2026 15:00:00 GMT")]);
        entry.own_etag = false;
        let both = [("if-none-match", "W/\"a\""), ("if-modified-since", "Sat, 21 Nov 2026 15:00:00 GMT")];
        assert_eq!(conditions(&entry), Some(headers(&both)));
    }

    // RFC 9111 §3.2
    #[test]
    fn a_304_brings_the_stored_headers_up_to_date() {
        let stored = [("x-a", "1"), ("x-b", "1"), ("content-length", "5"), ("date", "then"), ("content-type", "a/b")];
        let stored = headers(&stored);
        let not_modified = [("x-b", "2"), ("x-b", "3"), ("content-length", "0"), ("set-cookie", "a=b"), ("x-c", "4")];
        let expected =
            [("x-a", "1"), ("content-length", "5"), ("content-type", "a/b"), ("x-b", "2"), ("x-b", "3"), ("x-c", "4")];
        assert_eq!(freshened(&stored, &headers(&not_modified)), headers(&expected));
    }
}
