//! Forms that visitors submit.
//!
//! - `field`: a field with its value and error message, as pages show it.

mod field;

use http::{HeaderMap, StatusCode, Uri, header::ORIGIN, request::Parts};
use url::form_urlencoded;

pub(super) use self::field::FormField;
use super::pages;
use crate::ports::fetch::{Body, Collected, Response};

/// The longest form in bytes. An address of 500 characters takes 6,000: each has 4 bytes, and each byte is
/// percent-encoded.
const MAX_FORM: usize = 16 << 10;

/// The fields of a form that one of the shop's own pages sent.
pub(super) struct SubmittedForm(Vec<(String, String)>);

/// The reason why the shop does not accept a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormRejection {
    CrossSite,
    TooLong,
}

impl SubmittedForm {
    /// Reads a form from a request. All forms are read here, so no form of another site has an effect (CSRF).
    ///
    /// # Errors
    /// [`FormRejection`]: another site sent the form, or it is longer than [`MAX_FORM`].
    pub(super) async fn read(head: &Parts, body: Body) -> Result<Self, FormRejection> {
        if is_cross_site(&head.headers, &head.uri) {
            return Err(FormRejection::CrossSite);
        }
        let Ok(Collected::Whole(body)) = body.collect(MAX_FORM).await else { return Err(FormRejection::TooLong) };
        // Browsers send a line break as CR LF (HTML standard, §4.10.22.4). Length limits count it as one character.
        let fields =
            form_urlencoded::parse(&body).map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Ok(Self(fields.collect()))
    }

    /// A field's value without surrounding whitespace; empty if there is no such field.
    pub(super) fn trimmed(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// A field's exact value, for passwords: spaces at either end are part of a password.
    pub(super) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl FormRejection {
    pub(super) fn page(&self) -> Response {
        match self {
            Self::CrossSite => {
                let text = "This form was sent from another site. Please open the shop and try again there.";
                pages::message(StatusCode::FORBIDDEN, "Request refused", text)
            }
            Self::TooLong => {
                let text = "The form contains too much text. Please go back and shorten it.";
                pages::message(StatusCode::PAYLOAD_TOO_LARGE, "Form too large", text)
            }
        }
    }
}

/// True if a browser reports that another site sent this request. Current browsers send `Sec-Fetch-Site`, older ones
/// `Origin`. A client that sends neither is not a browser, so no other site can make it send a visitor's cookies.
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

/// The redirect target after a sign-in: `next` if it is a path of this shop, else `fallback`. Rejects `//` and `/\` at
/// the start, which browsers read as the start of a host name, and control characters, which could hide them.
pub(super) fn local_path<'a>(next: &'a str, fallback: &'a str) -> &'a str {
    let is_plain = next.len() <= 512 && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && next.starts_with('/') && !next.starts_with("//") { next } else { fallback }
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
}
