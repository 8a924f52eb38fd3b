//! A `Set-Cookie` line of the origin.

use std::borrow::Cow;

use http::HeaderValue;

/// The parts of a `Set-Cookie` line (RFC 6265 §5.2). Bytes that are not UTF-8 are read as U+FFFD.
#[derive(Debug, Clone, Copy)]
pub struct SetCookie<'a> {
    pair: &'a [u8],
    name: &'a [u8],
    value: Option<&'a [u8]>,
    attributes: &'a [u8],
}

impl<'a> SetCookie<'a> {
    #[must_use]
    pub fn of(line: &'a HeaderValue) -> Self {
        let (pair, attributes) = split_at(line.as_bytes(), b';');
        let (name, value) = split_at(pair, b'=');
        Self { pair, name, value, attributes: attributes.unwrap_or_default() }
    }

    /// As [`SetCookie::of`]. None if the line has other bytes than visible ASCII.
    #[must_use]
    pub fn of_ascii(line: &'a HeaderValue) -> Option<Self> {
        line.to_str().ok().map(|_| Self::of(line))
    }

    /// `name=value`, as in the line.
    #[must_use]
    pub const fn pair(&self) -> &'a [u8] {
        self.pair.trim_ascii()
    }

    /// The name, without the white space around it.
    #[must_use]
    pub fn name(&self) -> String {
        trimmed(self.name)
    }

    /// The value, without the white space around it. None without `=`.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        self.value.map(trimmed)
    }

    /// The text behind the first semicolon.
    #[must_use]
    pub fn attributes(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.attributes)
    }

    /// Returns whether the line deletes its cookie. Servers do that by an empty value, `Max-Age=0` or a negative one, or the first
    /// day of Unix time.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        let deletes = |attribute: &str| {
            let (name, text) = attribute.split_once('=').unwrap_or((attribute, ""));
            let name = name.trim();
            name.eq_ignore_ascii_case("max-age") && text.trim().starts_with(['0', '-'])
                || name.eq_ignore_ascii_case("expires") && text.contains("1970")
        };
        self.value().is_none_or(|value| value.is_empty()) || self.attributes().split(';').any(deletes)
    }
}

/// The bytes before the first `separator`, and those behind it; None without one.
fn split_at(bytes: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    let mut parts = bytes.splitn(2, |byte| *byte == separator);
    (parts.next().unwrap_or_default(), parts.next())
}

fn trimmed(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
