//! Hidden fields of forms, and the cookies that go with them.

use html5gum::{DefaultEmitter, Token, Tokenizer};
use http::{HeaderMap, header};
use url::Url;

/// The hidden fields of the form on `page` that is sent to `action`. A form without an address is sent to its page.
pub fn hidden_fields(html: &str, page: &Url, action: &Url) -> Vec<(String, String)> {
    let (mut fields, mut is_inside) = (Vec::new(), false);
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        let tag = match token {
            Token::StartTag(tag) => tag,
            Token::EndTag(tag) => {
                is_inside &= **tag.name != *b"form";
                continue;
            }
            _ => continue,
        };
        let attribute =
            |name: &[u8]| tag.attributes.get(name).map(|value| String::from_utf8_lossy(value).trim().to_owned());
        match &**tag.name {
            b"form" => {
                let target = page.join(&attribute(b"action").unwrap_or_default());
                is_inside = fields.is_empty() && target.is_ok_and(|target| target.path() == action.path());
            }
            b"input" if is_inside && attribute(b"type").as_deref() == Some("hidden") => {
                fields.extend(attribute(b"name").map(|name| (name, attribute(b"value").unwrap_or_default())));
            }
            _ => {}
        }
    }
    fields
}

/// The cookies of one visitor.
#[derive(Debug, Clone, Default)]
pub struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// Takes over the cookies of a response.
    pub fn update(&mut self, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE) {
            let Some((name, value)) = pair(line) else { continue };
            self.0.retain(|(own, _)| *own != name);
            let line = String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase();
            if !value.is_empty() && !line.contains("max-age=0") {
                self.0.push((name, value));
            }
        }
    }

    /// The header `Cookie`; None without cookies.
    pub fn header(&self) -> Option<String> {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns whether these cookies differ from `other` in a name.
    pub fn has_more_than(&self, other: &Self) -> bool {
        self.0.iter().any(|(name, _)| !other.0.iter().any(|(known, _)| known == name))
    }
}

/// Name and value of a `Set-Cookie`.
pub fn pair(line: &http::HeaderValue) -> Option<(String, String)> {
    let line = String::from_utf8_lossy(line.as_bytes());
    let (name, value) = line.split(';').next()?.split_once('=')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fields_of_the_named_form_count() {
        let page = Url::parse("http://shop.test/login?next=/").unwrap();
        let html = "<form action=/search><input type=hidden name=a value=1></form>\
            <form method=post><input type='hidden' name=token value='x&amp;y'><input name=user></form>\
            <input type=hidden name=outside value=1>";
        let action = page.join("/login").unwrap();
        assert_eq!(hidden_fields(html, &page, &action), [("token".to_owned(), "x&y".to_owned())]);
        assert_eq!(hidden_fields(html, &page, &page.join("/other").unwrap()), []);
    }

    #[test]
    fn a_deleted_cookie_is_not_sent() {
        let mut cookies = Cookies::default();
        let mut headers = HeaderMap::new();
        headers.append(header::SET_COOKIE, "a=1; Path=/".parse().unwrap());
        headers.append(header::SET_COOKIE, "b=2".parse().unwrap());
        cookies.update(&headers);
        assert_eq!(cookies.header().as_deref(), Some("a=1; b=2"));
        headers.clear();
        headers.append(header::SET_COOKIE, "a=\"\"; Max-Age=0".parse().unwrap());
        cookies.update(&headers);
        assert_eq!(cookies.header().as_deref(), Some("b=2"));
    }
}
