//! A form that somebody sent, and the fields that show it again: with what was typed, and what is wrong beside it.

use http::{HeaderMap, StatusCode, Uri, header::ORIGIN, request::Parts};
use url::form_urlencoded;

use super::pages;
use crate::ports::fetch::{Body, Collected, Response};

/// The longest form, in bytes: an address of 500 characters, each four bytes that are percent-encoded, is 6,000.
const MAX_FORM: usize = 16 << 10;

/// The fields of a form that one of our own pages sent.
pub(super) struct Form(Vec<(String, String)>);

/// Why a form is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    CrossSite,
    TooLong,
}

impl Form {
    /// Reads a form. Every form of the shop is read here, so none of another site ever does anything.
    pub(super) async fn read(head: &Parts, body: Body) -> Result<Self, Refusal> {
        if is_cross_site(&head.headers, &head.uri) {
            return Err(Refusal::CrossSite);
        }
        let Ok(Collected::Whole(body)) = body.collect(MAX_FORM).await else { return Err(Refusal::TooLong) };
        // A line's end is one character to whoever typed it, and two as a form sends it (the HTML standard, §4.10.22.4).
        let fields =
            form_urlencoded::parse(&body).map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Ok(Self(fields.collect()))
    }

    /// The trimmed input of a field; empty without the field.
    pub(super) fn text(&self, name: &str) -> &str {
        self.as_typed(name).trim()
    }

    /// To the letter: a password may well end with a space.
    pub(super) fn as_typed(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl Refusal {
    pub(super) fn page(&self) -> Response {
        match self {
            Self::CrossSite => {
                pages::message(StatusCode::FORBIDDEN, "Not from there", "This form was sent by another site.")
            }
            Self::TooLong => {
                let text = "This is more than the form has room for. Please go back and shorten it.";
                pages::message(StatusCode::PAYLOAD_TOO_LARGE, "Too long", text)
            }
        }
    }
}

/// Returns whether a browser says that another site sent this. Every browser of today sends `Sec-Fetch-Site`, older ones `Origin`;
/// what sends neither is no browser, and carries nobody's cookies against their will.
fn is_cross_site(headers: &HeaderMap, uri: &Uri) -> bool {
    let sites = headers.get_all("sec-fetch-site");
    if sites.iter().next().is_some() {
        return sites.iter().any(|site| site != "same-origin" && site != "none");
    }
    headers.get_all(ORIGIN).iter().any(|origin| {
        let origin = origin.to_str().unwrap_or_default().parse::<Uri>().unwrap_or_default();
        let is_own = origin.scheme() == uri.scheme() && origin.authority() == uri.authority();
        origin.authority().is_none() || !is_own
    })
}

/// A field as the template `input.html` shows it.
pub(super) struct Input {
    pub name: &'static str,
    pub label: &'static str,
    /// `text`, `email`, `password` or `textarea`.
    pub kind: &'static str,
    /// The `autocomplete` token (HTML standard, §4.10.18.7).
    pub autocomplete: &'static str,
    /// Characters at most.
    pub max: usize,
    /// A rule to know before typing; empty for none.
    pub hint: &'static str,
    pub value: String,
    pub problem: Option<String>,
}

impl Input {
    pub(super) const fn new(
        name: &'static str,
        label: &'static str,
        kind: &'static str,
        autocomplete: &'static str,
        max: usize,
    ) -> Self {
        Self { name, label, kind, autocomplete, max, hint: "", value: String::new(), problem: None }
    }

    pub(super) const fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// With what was typed; a password is not sent back.
    pub(super) fn typed(mut self, form: &Form) -> Self {
        if self.kind != "password" {
            form.text(self.name).clone_into(&mut self.value);
        }
        self
    }

    pub(super) fn with_problem(mut self, problem: Option<&str>) -> Self {
        self.problem = problem.map(str::to_owned);
        self
    }

    /// The error of a required text with a maximum length.
    pub(super) fn check_text(self) -> Self {
        let length = self.value.chars().count();
        let problem = if length == 0 {
            Some(format!("{} is missing.", self.label))
        } else if length > self.max {
            Some(format!("At most {} characters, please: these are {length}.", self.max))
        } else if self.value.chars().any(is_unseen) {
            Some("There is a character in it that no one can see.".to_owned())
        } else {
            None
        };
        Self { problem, ..self }
    }
}

/// Controls, bytes that are no text, and what has no width or turns the direction of what follows (Unicode Technical Report 36, §2.10):
/// a name of such characters is none.
fn is_unseen(character: char) -> bool {
    let is_format = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}');
    is_format || (character.is_control() && character != '\n')
}

/// Where to go after a sign-in: `next` if it is a path of this shop, else `otherwise`. Browsers read `//` and `/\` as the begin of a
/// host, so neither may stand at the begin, and no control character may hide one.
pub(super) fn local_path<'a>(next: &'a str, otherwise: &'a str) -> &'a str {
    let is_plain = next.len() <= 512 && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && next.starts_with('/') && !next.starts_with("//") { next } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_shop_is_gone_to() {
        for next in ["/", "/checkout", "/orders/1?a=b#c", "/a//b"] {
            assert_eq!(local_path(next, "/account"), next);
        }
        for next in [
            "",
            "checkout",
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/a b",
            "/ä",
            "/a\r\nEdge-Login: root",
            &format!("/{}", "a".repeat(600)),
        ] {
            assert_eq!(local_path(next, "/account"), "/account", "{next}");
        }
    }

    #[test]
    fn a_text_must_be_there_and_fit() {
        let check = |value: &str| {
            let input = Input { value: value.to_owned(), ..Input::new("name", "Your name", "text", "name", 5) };
            input.check_text().problem
        };
        assert_eq!(check("äöüßé"), None);
        assert_eq!(check(""), Some("Your name is missing.".to_owned()));
        assert!(check("Ada Lovelace").unwrap().contains("At most 5"));
        assert!(check("a\0b").is_some());
    }
}
