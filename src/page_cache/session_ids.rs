//! Ids of sessions in pages. Some shops write the id of a new session into links and forms, for visitors without cookies: Java
//! (`;jsessionid=…`), and PHP with `session.use_trans_sid`. All visitors of such a page would continue one session, so the page
//! is not stored.

use http::{HeaderMap, HeaderValue, header};

use super::stored_page::StoredPage;
use crate::proxy::cookie_name;

/// Least length of a cookie's value, bytes. A shorter one occurs in a page by chance.
const MIN_VALUE: usize = 16;
/// The names of sessions in addresses. An id follows: scripts may have the name alone.
const NAMES: [&str; 2] = [";jsessionid=", "PHPSESSID="];
/// Least length of an id after its name, bytes.
const MIN_ID: usize = 8;

/// The reason not to store a page, for operators.
pub const CAUSE: &str = "the response contains the id of a session";

/// The texts that a page must not contain. The default is none.
#[derive(Default)]
pub struct SessionIds(Vec<String>);

impl SessionIds {
    /// Of a storable response to a shared render: [`NAMES`], and the values of its cookies, which the rules drop. A value in `url`, the
    /// address of the page, is no secret. All visitors have the same value of `csrf`, the cookie of `CSRF_COOKIE`.
    pub fn of(headers: &HeaderMap, url: &str, csrf: Option<&str>) -> Self {
        let mut ids: Vec<_> = NAMES.map(str::to_owned).into();
        for line in headers.get_all(header::SET_COOKIE) {
            let text = String::from_utf8_lossy(line.as_bytes());
            let pair = text.split(';').next().unwrap_or_default();
            let value = pair.split_once('=').map_or("", |(_, value)| value.trim_matches(['"', ' ']));
            if value.len() >= MIN_VALUE && !url.contains(value) && csrf != Some(&*cookie_name(line)) {
                ids.push(value.to_owned());
            }
        }
        Self(ids)
    }

    /// Returns whether the body or a header contains an id.
    pub fn are_in(&self, page: &StoredPage) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let body = page.body.read();
        let texts = || page.headers.values().map(HeaderValue::as_bytes).chain([&body[..]]);
        self.0.iter().any(|id| texts().any(|text| contains(text, id)))
    }
}

/// Returns whether `text` contains the value `id`, or the name `id` with an id behind it.
fn contains(text: &[u8], id: &str) -> bool {
    let tail = if id.ends_with('=') && id.len() < MIN_VALUE { MIN_ID } else { 0 };
    let id = id.as_bytes();
    text.windows(id.len() + tail).any(|window| {
        window.first() == id.first()
            && window.strip_prefix(id).is_some_and(|tail| tail.iter().all(u8::is_ascii_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_with_an_id_only() {
        for (text, expected) in [
            ("<a href='/cart;jsessionid=0A1B2C3D4E'>", true),
            ("<a href='/cart;jsessionid=0A1B2C3D", true),
            ("url.indexOf(';jsessionid='); let name = ''", false),
            ("/cart;jsessionid=${id_of_it}", false),
            (";jsessionid=", false),
            ("", false),
        ] {
            assert_eq!(contains(text.as_bytes(), NAMES[0]), expected, "{text}");
        }
        assert!(contains(b"<a href='/?sid=a-value-of-a-cookie='>", "a-value-of-a-cookie="));
    }
}
