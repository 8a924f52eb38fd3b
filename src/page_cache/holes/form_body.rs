//! Fields of a request's body that hold a [placeholder](Placeholder).
//!
//! A placeholder counts only as the whole value of a field. A visitor's text cannot imitate a field: browsers escape `&` and
//! `=` in URL-encoded forms, and scripts escape quotes in JSON. In multipart bodies, no page knows the browser's boundary.

use std::ops::Range;

use http::{HeaderMap, header};
use url::form_urlencoded;

use super::placeholder::{self, Placeholder};

/// A body with named fields.
pub struct FormBody<'a> {
    text: &'a [u8],
    format: Format<'a>,
}

#[derive(Clone, Copy)]
enum Format<'a> {
    /// `application/x-www-form-urlencoded` (URL Standard, §5).
    UrlEncoded,
    Json,
    /// `multipart/form-data` (RFC 7578). Each part follows the delimiter.
    Multipart {
        delimiter: &'a [u8],
    },
}

/// A field with a placeholder.
#[derive(Debug, PartialEq, Eq)]
pub struct PlaceholderField<'a> {
    /// As it stands in the body.
    pub name: &'a str,
    /// The bytes of the value.
    pub range: Range<usize>,
    pub placeholder: Placeholder,
}

impl<'a> FormBody<'a> {
    /// None if the body has no named fields.
    #[must_use]
    pub fn new(headers: &HeaderMap, text: &'a [u8]) -> Option<Self> {
        let media = headers.get(header::CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
        let format = if media.starts_with("application/x-www-form-urlencoded") {
            Format::UrlEncoded
        } else if media.starts_with("multipart/form-data") {
            Format::Multipart { delimiter: text.split(|byte| *byte == b'\r').next()? }
        } else if media.contains("json") {
            Format::Json
        } else {
            return None;
        };
        Some(Self { text, format })
    }

    /// The parameters of an address.
    #[must_use]
    pub const fn of_query(text: &'a [u8]) -> Self {
        Self { text, format: Format::UrlEncoded }
    }

    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The fields whose whole value is a placeholder.
    #[must_use]
    pub fn fields(&self) -> Vec<PlaceholderField<'a>> {
        let field = |range: Range<usize>| {
            let (before, rest) = self.text.split_at_checked(range.start)?;
            let (value, after) = rest.split_at_checked(range.len())?;
            let name = self.name(before, after)?;
            Some(PlaceholderField { name, placeholder: Placeholder::decode(value)?, range })
        };
        placeholder::ranges(self.text).filter_map(field).collect()
    }

    /// The name of the field whose value stands between `before` and `after`.
    fn name(&self, before: &'a [u8], after: &[u8]) -> Option<&'a str> {
        let (name, is_whole) = match self.format {
            Format::UrlEncoded => {
                let before = before.strip_suffix(b"=")?;
                // Checked first, so that the search for each name ends at the placeholder before it.
                if !matches!(after.first(), None | Some(b'&')) {
                    return None;
                }
                (before.rsplit(|byte| *byte == b'&').next()?, true)
            }
            Format::Json => {
                let before = before.strip_suffix(b"\"")?.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
                (before.strip_suffix(b"\"")?.rsplit(|byte| *byte == b'"').next()?, after.starts_with(b"\""))
            }
            Format::Multipart { delimiter } => {
                let before = before.strip_suffix(b"\"\r\n\r\n")?;
                let name = before.rsplit(|byte| *byte == b'"').next()?;
                let head = before.strip_suffix(name)?.strip_suffix(b"\r\nContent-Disposition: form-data; name=\"")?;
                (name, head.ends_with(delimiter) && after.strip_prefix(b"\r\n")?.starts_with(delimiter))
            }
        };
        std::str::from_utf8(name).ok().filter(|_| is_whole)
    }

    /// Returns whether a field may hold the token of the form's field `token_field`: this field, or one with a usual name of tokens. A link
    /// could write a placeholder into any other field.
    #[must_use]
    pub fn is_for_token(
        &self,
        PlaceholderField { name, .. }: &PlaceholderField<'_>,
        token_field: Option<&str>,
    ) -> bool {
        const USUAL: [&str; 4] = ["token", "csrf", "xsrf", "nonce"];
        let lower = name.to_ascii_lowercase();
        token_field.is_some_and(|field| self.encode(field) == *name) || USUAL.iter().any(|part| lower.contains(part))
    }

    /// A value as it stands in the body.
    #[must_use]
    pub fn encode(&self, value: &str) -> String {
        match self.format {
            Format::UrlEncoded => form_urlencoded::byte_serialize(value.as_bytes()).collect(),
            Format::Json => {
                // The quotes around it are there already.
                let json = serde_json::to_string(value).unwrap_or_default();
                json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
            }
            Format::Multipart { .. } => value.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(media: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, media.parse().unwrap())])
    }

    fn names<'a>(media: &str, text: &'a str) -> Vec<&'a str> {
        FormBody::new(&headers(media), text.as_bytes()).map_or_else(Vec::new, |body| {
            body.fields()
                .into_iter()
                .map(|PlaceholderField { name, range, placeholder }| {
                    assert_eq!(text[range], placeholder.encode());
                    name
                })
                .collect()
        })
    }

    #[test]
    fn a_placeholder_is_the_whole_value_of_a_field() {
        let own =
            Placeholder { page: "/a".to_owned(), selector: "i".to_owned(), form: String::new(), index: 0 }.encode();
        let part =
            |head: &str, value: &str| format!("--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n--x");
        let imitated = part("name=\"t\"", &own).replace("--x", "--y");
        for (media, text, expected) in [
            ("application/x-www-form-urlencoded", format!("a=1&f%5Bt%5D={own}&t={own}"), vec!["f%5Bt%5D", "t"]),
            ("application/x-www-form-urlencoded", format!("{own}&a=+{own}&t={own}+&{own}=1&t={own}."), vec![]),
            ("application/x-www-form-urlencoded", format!("{own}={own}={own}."), vec![]),
            ("application/json", format!("{{\"a\": {{\"t\":\"{own}\", \"u\" : \"{own}\"}}}}"), vec!["t", "u"]),
            ("application/json", format!("[\"{own}\", \"t: {own}\", \"\\\"t\\\":\\\"{own}\", \"t\", {own}]"), vec![]),
            ("multipart/form-data; boundary=x", part("name=\"t\"", &own), vec!["t"]),
            ("multipart/form-data; boundary=x", part("name=\"t\"", &format!("a\r\n{own}")), vec![]),
            ("multipart/form-data; boundary=x", part("name=\"t\"", &imitated), vec![]),
            ("multipart/form-data; boundary=x", part("name=\"t\"; filename=\"a\"", &own), vec![]),
            ("multipart/form-data; boundary=x", own.clone(), vec![]),
            ("text/plain", format!("t={own}"), vec![]),
        ] {
            assert_eq!(names(media, &text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_encoded_for_its_body() {
        for (media, expected) in [
            ("application/x-www-form-urlencoded; charset=utf-8", "a%2B%22"),
            ("application/json", "a+\\\""),
            ("multipart/form-data; boundary=x", "a+\""),
        ] {
            assert_eq!(FormBody::new(&headers(media), b"").unwrap().encode("a+\""), expected, "{media}");
        }
    }

    #[test]
    fn a_token_is_for_its_own_field_and_for_fields_with_usual_names() {
        let headers = headers("application/x-www-form-urlencoded");
        let form = FormBody::new(&headers, b"").unwrap();
        let placeholder =
            Placeholder { page: "/a".to_owned(), selector: "i".to_owned(), form: String::new(), index: 0 };
        let is = |name, own| {
            form.is_for_token(&PlaceholderField { name, range: 0..0, placeholder: placeholder.clone() }, own)
        };
        for name in ["_token", "f%5B_csrf%5D", "X-XSRF", "_wpnonce"] {
            assert!(is(name, None), "{name}");
        }
        assert!(is("f%5Bkey%5D", Some("f[key]")) && !is("f%5Bkey%5D", Some("f[key2]")));
        assert!(!is("comment", Some("key")) && !is("comment", None) && !is("", None));
    }
}
