//! Converts headers in both directions, to and from the text of `glue.js`. The platform decodes values as UTF-8, and an
//! invalid byte arrives as U+FFFD. So the text is UTF-8, and no value can break a response.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The lines of a head. Splits bytes, because the search for a character costs more than most lines.
pub fn lines(head: &str) -> impl Iterator<Item = &[u8]> {
    head.as_bytes().split(|byte| *byte == b'\n')
}

/// The most headers of a message. `HeaderMap` panics above 24,576 names, and above 6,553 if many names have the same hash. A
/// panic would end all requests of the isolate.
const MAX_HEADERS: usize = 2_000;

/// Reads all headers. Each `Set-Cookie` has its own lines. None for more than [`MAX_HEADERS`]: without one of its headers, a
/// message could have another meaning.
pub fn read<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(16);
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if headers.len() == MAX_HEADERS {
            return None;
        }
        if let (Ok(name), Some(value)) = (HeaderName::from_bytes(name), header_value(value)) {
            headers.append(name, value);
        }
    }
    Some(headers)
}

/// The value, with a space in place of each control character (RFC 9110 §5.5): a damaged `Cache-Control` or `Set-Cookie` must not
/// count as missing.
fn header_value(value: &[u8]) -> Option<HeaderValue> {
    let repaired = || value.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect::<Vec<_>>();
    HeaderValue::from_bytes(value).or_else(|_| HeaderValue::try_from(repaired())).ok()
}

/// Writes headers. The text begins with an empty line if a header has several values.
pub fn write(headers: &HeaderMap) -> String {
    let mut text = String::with_capacity(512);
    if headers.keys_len() < headers.len() {
        text.push('\n');
    }
    for (number, (name, value)) in headers.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(name.as_str());
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(value.as_bytes()));
    }
    text
}
