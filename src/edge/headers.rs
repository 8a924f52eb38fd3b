//! Headers, both ways, as the text that `glue.js` reads and writes. The platform takes the bytes of a value for UTF-8: a lone latin1
//! byte arrives as U+FFFD, and there is no way to see what it was. So text is carried as UTF-8 here too, and no value can break an answer.

use std::str::Split;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Reads all headers; each `Set-Cookie` is one of its own.
pub fn read(mut lines: Split<'_, char>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// Writes headers; behind an empty line, if one of them has several values.
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
