//! Hidden fields of forms, and the cookies that go with them.

use edgefront::proxy;
use html5gum::{DefaultEmitter, Token, Tokenizer};
use http::{HeaderMap, HeaderValue, header};
use url::Url;
use xtask::failure::Failure;

use crate::origin::{Origin, Visitor};

/// Adds the hidden fields of the form on `page` with the address `action`, and takes over the page's cookies.
pub async fn with_hidden(
    origin: &Origin,
    cookies: &mut Cookies,
    visitor: Visitor<'_>,
    (page, action): (&str, &str),
    mut fields: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, Failure> {
    let answer = origin.get(page, visitor).cookies(cookies).send().await?;
    cookies.update(&answer.headers);
    let hidden = hidden_fields(&answer.body, &origin.address(page)?, &origin.address(action)?);
    let hidden: Vec<_> = hidden.into_iter().filter(|(name, _)| !fields.iter().any(|(own, _)| own == name)).collect();
    fields.extend(hidden);
    Ok(fields)
}

/// The hidden fields of the form on `page` that is sent to `action`. A form without an address is sent to its page.
fn hidden_fields(html: &str, page: &Url, action: &Url) -> Vec<(String, String)> {
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

/// The cookies of one visitor, as the header of a request.
#[derive(Debug, Clone, Default)]
pub struct Cookies(HeaderMap);

impl Cookies {
    /// Takes over the cookies of a response.
    pub fn update(&mut self, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE) {
            proxy::apply_set_cookie(&mut self.0, line);
        }
    }

    /// The header `Cookie`; None without cookies.
    pub fn header(&self) -> Option<&HeaderValue> {
        self.0.get(header::COOKIE)
    }

    /// Returns whether these cookies have a name that `other` has not.
    pub fn has_more_than(&self, other: &Self) -> bool {
        self.names().any(|name| other.names().all(|known| known != name))
    }

    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let cookies =
            self.header().map(HeaderValue::as_bytes).into_iter().flat_map(|text| text.split(|byte| *byte == b';'));
        cookies.filter_map(|cookie| cookie.trim_ascii().split(|byte| *byte == b'=').next())
    }
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
        for deletion in
            ["a=", "a=\"\"; Max-Age=0", "a=deleted; Max-Age=-1", "a=deleted; Expires=Thu, 01 Jan 1970 00:00:01 GMT"]
        {
            let set = |line: &'static str| HeaderMap::from_iter([(header::SET_COOKIE, HeaderValue::from_static(line))]);
            let mut cookies = Cookies::default();
            cookies.update(&set("b=2"));
            let without_login = cookies.clone();
            cookies.update(&set("a=1; Path=/"));
            assert_eq!(cookies.header().unwrap(), "b=2; a=1");
            assert!(cookies.has_more_than(&without_login) && !without_login.has_more_than(&cookies));
            cookies.update(&set(deletion));
            assert_eq!(cookies.header().unwrap(), "b=2", "{deletion}");
            assert!(!cookies.has_more_than(&without_login));
        }
    }
}
