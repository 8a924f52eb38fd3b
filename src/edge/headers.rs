//! Headers, both ways, as the text that `glue.js` reads and writes. The platform takes the bytes of a value for UTF-8: a lone latin1
//! byte arrives as U+FFFD, and there is no way to see what it was. So text is carried as UTF-8 here too, and no value can break an answer.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The lines of a head. By bytes: to look for a character takes longer than to read what is in most of them.
pub fn lines(head: &str) -> impl Iterator<Item = &[u8]> {
    head.as_bytes().split(|byte| *byte == b'\n')
}

/// Reads all headers; each `Set-Cookie` is one of its own.
pub fn read<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
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
