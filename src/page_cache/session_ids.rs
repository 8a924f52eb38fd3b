//! Ids of sessions in pages. All visitors of such a page would continue one session, so the page is not stored.
//!
//! Some shops write the id of a new session into links and forms, for visitors without cookies: Java (`;jsessionid=…`), PHP with
//! `session.use_trans_sid`, and `ColdFusion` (`CFTOKEN=…`, often 8 digits). Some APIs send it in a header: Vendure
//! (`vendure-auth-token`) and `WooCommerce` (`Cart-Token`).

use http::{HeaderMap, HeaderValue, header};
use memchr::memchr_iter;

use super::policy::validation::is_token;
use crate::proxy::SetCookie;

/// Least length of a cookie's value, bytes. A shorter one occurs in a page by chance.
const MIN_VALUE: usize = 16;
/// The names of sessions in addresses. An id follows: scripts may have the name alone.
const NAMES: [&str; 3] = [";jsessionid=", "PHPSESSID=", "CFTOKEN="];
/// Least length of an id after its name, bytes.
const MIN_ID: usize = 8;

/// The reason not to store a page, for operators.
pub const CAUSE: &str = "the response contains the id of a session";

/// The ids of sessions that a page must not contain: those behind [`NAMES`], and these values of cookies.
pub struct SessionIds(Vec<String>);

impl SessionIds {
    /// Takes the values of the dropped cookies in `headers`. Skips those that the page's address `url` contains, and the cookie `csrf`
    /// (`CSRF_COOKIE`), whose value all visitors share.
    pub fn of(headers: &HeaderMap, url: &str, csrf: Option<&str>) -> Self {
        let mut values = Vec::new();
        for line in headers.get_all(header::SET_COOKIE) {
            let cookie = SetCookie::of(line);
            let Some(value) = cookie.value() else { continue };
            let value = value.trim_matches(['"', ' ']);
            if value.len() >= MIN_VALUE && !url.contains(value) && csrf != Some(cookie.name().as_str()) {
                values.push(value.to_owned());
            }
        }
        Self(values)
    }

    /// Returns whether the body or a header contains an id.
    pub fn are_in(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        if headers.iter().any(|(name, value)| is_token(name) && value.len() >= MIN_VALUE) {
            return true;
        }
        let mut texts = headers.values().map(HeaderValue::as_bytes).chain([body]);
        texts.any(|text| has_named_id(text) || self.0.iter().any(|value| contains(text, value.as_bytes())))
    }
}

/// Returns whether `text` contains one of [`NAMES`] with an id behind it. One pass over all bytes of a rendered page.
fn has_named_id(text: &[u8]) -> bool {
    memchr_iter(b'=', text).any(|at| {
        let (before, behind) = text.split_at(at + 1);
        let has_id = || behind.get(..MIN_ID).is_some_and(|id| id.iter().all(u8::is_ascii_alphanumeric));
        NAMES.iter().any(|name| before.ends_with(name.as_bytes())) && has_id()
    })
}

fn contains(text: &[u8], value: &[u8]) -> bool {
    let Some(first) = value.first() else { return false };
    memchr_iter(*first, text).any(|at| text.get(at..).is_some_and(|rest| rest.starts_with(value)))
}

/// The address without the parameters that [`NAMES`] names or `is_id` selects by name and value, in the path and in the query.
#[must_use]
pub fn without(address: &str, is_id: impl Fn(&str, &str) -> bool) -> String {
    let is_kept = |parameter: &str| {
        let is_named = |name: &str| NAMES.iter().any(|id| id.trim_matches([';', '=']).eq_ignore_ascii_case(name));
        parameter.split_once('=').is_none_or(|(name, value)| !is_named(name) && !is_id(name, value))
    };
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let mut parts = path.split(';');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (parameter, rest) = part.find('/').and_then(|end| part.split_at_checked(end)).unwrap_or((part, ""));
        if is_kept(parameter) {
            kept.extend([";", parameter]);
        }
        kept.push_str(rest);
    }
    for (index, parameter) in query.split('&').filter(|part| !part.is_empty() && is_kept(part)).enumerate() {
        kept.extend([if index == 0 { "?" } else { "&" }, parameter]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_the_ids_of_sessions() {
        for (address, expected) in [
            ("https://shop.example/p;jsessionid=0A1B?id=5#top", "https://shop.example/p?id=5#top"),
            ("https://shop.example/p;jsessionid=0A1B.node1/q", "https://shop.example/p/q"),
            ("/p;jsessionid=0A1B", "/p"),
            ("/p;a=b;JSESSIONID=0A1B", "/p;a=b"),
            ("/p?PHPSESSID=0a1b&id=5", "/p?id=5"),
            ("/p?id=5&PHPSESSID=0a1b", "/p?id=5"),
            ("/p?id=5&PHPSESSID=0a1b&page=2", "/p?id=5&page=2"),
            ("/p?PHPSESSID=0a1b", "/p"),
            ("/p?osCsid=s3cr3t", "/p"),
            ("/p?osCsid=other&a", "/p?osCsid=other&a"),
            ("/p?id=5", "/p?id=5"),
        ] {
            assert_eq!(without(address, |_, value| value == "s3cr3t"), expected, "{address}");
        }
    }

    #[test]
    fn a_name_counts_with_an_id_only() {
        for (text, expected) in [
            ("<a href='/cart;jsessionid=0A1B2C3D4E'>", true),
            ("<a href='/cart;jsessionid=0A1B2C3D", true),
            ("<a href='/cart.cfm?CFID=541969&amp;CFTOKEN=23563561'>", true),
            ("url.indexOf(';jsessionid='); let name = ''", false),
            ("/cart;jsessionid=${id_of_it}", false),
            (";jsessionid=", false),
            ("", false),
        ] {
            assert_eq!(has_named_id(text.as_bytes()), expected, "{text}");
        }
        assert!(contains(b"<a href='/?sid=a-value-of-a-cookie='>", b"a-value-of-a-cookie="));
        assert!(!contains(b"<a href='/?sid=a-value-of-a'>", b"a-value-of-a-cookie="));
    }
}
