//! Converts headers in both directions, to and from the text of `glue.js`. The platform decodes values as UTF-8, and an
//! invalid byte arrives as U+FFFD. So the text is UTF-8, and no value can break a response.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The lines of a head. Splits bytes, because the search for a character costs more than most lines.
pub fn lines(head: &str) -> impl Iterator<Item = &[u8]> {
    head.as_bytes().split(|byte| *byte == b'\n')
}

/// Reads all headers. Each `Set-Cookie` has its own lines.
pub fn read<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
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
