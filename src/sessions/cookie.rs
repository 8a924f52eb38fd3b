//! The session cookie. [`Keyring`](super::Keyring) signs and verifies it.
//!
//! ```text
//! Set-Cookie: __Host-session=<token>.<mac>; Max-Age=<seconds>; Path=/; HttpOnly; Secure; SameSite=Lax
//! Set-Cookie: __Host-session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax
//! ```
//!
//! - `<token>` is 28 characters of base64url without padding (RFC 4648, section 5). They encode 21 bytes: 1 byte
//!   for the layout, the Unix second in which the session began (4 bytes, big-endian) and 16 random bytes. With
//!   `SHARDS` = n above 1, the first byte is n − 1, and the last two bytes (big-endian) modulo n are the number of the
//!   session's shard. Otherwise the first byte is 0.
//! - `<mac>` is 43 characters of base64url without padding. They encode the 32 bytes of an HMAC-SHA256 (RFC 2104). Its
//!   message is exactly the 43 ASCII bytes `__Host-session=<token>`: the cookie's name, `=`, and the token as text. Its
//!   key is the UTF-8 text of an entry of `SESSION_KEYS`. The first entry signs; every entry verifies.
//! - `<seconds>` is `SESSION_MAX_AGE`, 7,776,000 (90 days) by default. `Max-Age=0` deletes the cookie.
//! - The prefix `__Host-` makes browsers require `Secure` and `Path=/` and refuse `Domain`, so a sibling host cannot
//!   plant a session.
//!
//! `docs/api.md` has an example.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

pub const NAME: &str = "__Host-session";

/// Lifetime of the cookie of a change, and the time for which isolates keep facts of a session for pages with holes.
pub const CHANGED_FOR: Duration = Duration::from_secs(2);

/// The name of the cookie of a visitor who changed something within [`CHANGED_FOR`].
const CHANGED: &str = "__Host-session-changed";

/// The name of the cookie of a visitor whose session with the shop keeps a choice (`CHOICES`).
const CHOICE: &str = "__Host-session-choice";

/// The name in the MACs of the cookies with sync tokens.
pub(super) const SYNC: &str = "__Host-session-sync";

/// The beginning of the names of the cookies with sync tokens. `sync_cookies` has their format.
pub(super) const SYNC_ID: &str = "__Host-session-sync-";

/// The attributes of every `Set-Cookie`, after `Max-Age`.
pub(super) const ATTRIBUTES: &str = "Path=/; HttpOnly; Secure; SameSite=Lax";

/// The `Set-Cookie` beside a change by the visitor. While the browser sends it, no isolate answers with kept facts.
#[must_use]
pub const fn changed() -> HeaderValue {
    HeaderValue::from_static("__Host-session-changed=1; Max-Age=2; Path=/; HttpOnly; Secure; SameSite=Lax")
}

/// Returns whether the visitor changed something within [`CHANGED_FOR`].
#[must_use]
pub fn has_changed(headers: &HeaderMap) -> bool {
    has(headers, CHANGED)
}

/// The `Set-Cookie` beside a choice by the visitor (`CHOICES`). It lasts for a year, because the shop's session may last as long. It
/// has an effect only beside a cookie of `COOKIES_HOLES`.
#[must_use]
pub const fn chosen() -> HeaderValue {
    HeaderValue::from_static("__Host-session-choice=1; Max-Age=31536000; Path=/; HttpOnly; Secure; SameSite=Lax")
}

/// Returns whether the visitor has made a choice.
#[must_use]
pub fn has_chosen(headers: &HeaderMap) -> bool {
    has(headers, CHOICE)
}

fn has(headers: &HeaderMap, wanted: &str) -> bool {
    cookies(headers).any(|cookie| name(cookie) == wanted.as_bytes())
}

/// The `Set-Cookie` that deletes the cookie.
#[must_use]
pub const fn clear() -> HeaderValue {
    HeaderValue::from_static("__Host-session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax")
}

/// Returns whether the request carries a session cookie, valid or not.
#[must_use]
pub fn is_sent(headers: &HeaderMap) -> bool {
    cookies(headers).any(|cookie| is_session(name(cookie)))
}

/// The request's cookies without edgefront's own, for the origin. `None` if no other cookie is left.
#[must_use]
pub fn strip(headers: &HeaderMap) -> Option<HeaderValue> {
    let others: Vec<_> = of_origin(headers).collect();
    // Valid again as a header value, because every byte comes from one.
    (!others.is_empty()).then(|| HeaderValue::from_bytes(&others.join(b"; ".as_slice())).ok())?
}

/// The request's cookies except edgefront's own, each as `name=value`.
pub fn of_origin(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    cookies(headers).filter(|cookie| !cookie.is_empty() && !is_own(name(cookie)))
}

/// Returns whether a cookie of this name is edgefront's own.
fn is_own(name: &[u8]) -> bool {
    is_session(name) || [CHANGED, CHOICE].iter().any(|own| name == own.as_bytes()) || is_sync(name)
}

pub(super) fn is_sync(name: &[u8]) -> bool {
    name.starts_with(SYNC_ID.as_bytes())
}

/// The values of the request's session cookies, in order. A browser sends one.
pub(super) fn values(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    pairs_of(headers, is_session).map(|(_, value)| value)
}

/// Name and value of the request's cookies with such names, in order.
pub(super) fn pairs_of(headers: &HeaderMap, is_wanted: fn(&[u8]) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
    cookies(headers).filter_map(move |cookie| {
        let name = name(cookie);
        if is_wanted(name) { Some((name, cookie.get(name.len() + 1..)?)) } else { None }
    })
}

fn is_session(name: &[u8]) -> bool {
    name == NAME.as_bytes()
}

fn name(cookie: &[u8]) -> &[u8] {
    cookie.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Each cookie of each `Cookie` header, without the spaces around it.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        cookies.iter().map(|cookie| (header::COOKIE, HeaderValue::from_str(cookie).unwrap())).collect()
    }

    #[test]
    fn clear_has_the_attributes_of_every_session_cookie() {
        assert_eq!(clear(), format!("{NAME}=; Max-Age=0; {ATTRIBUTES}"));
        assert_eq!(changed(), format!("{CHANGED}=1; Max-Age={}; {ATTRIBUTES}", CHANGED_FOR.as_secs()));
        assert_eq!(chosen(), format!("{CHOICE}=1; Max-Age=31536000; {ATTRIBUTES}"));
    }

    #[test]
    fn the_origin_gets_every_cookie_except_the_session_cookie() {
        let strip = |cookies: &[&str]| strip(&headers(cookies)).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(strip(&[]), None);
        assert_eq!(strip(&["__Host-session=x", "__Host-session-changed=1", "__Host-session-sync-=x.y"]), None);
        assert_eq!(strip(&["__Host-session-choice=1"]), None);
        assert_eq!(strip(&["__Host-session-sync-=", "__Host-session-sync-a; __Host-session-sync-Zm9v_-0=x.y"]), None);
        assert_eq!(strip(&["__Host-session-sync2=x"]).as_deref(), Some("__Host-session-sync2=x"));
        assert_eq!(strip(&["__Host-session", " ; "]), None);
        assert_eq!(strip(&["a=b; __Host-session=x.y;c=\"d e\""]).as_deref(), Some("a=b; c=\"d e\""));
        assert_eq!(strip(&["a=b", "__Host-session=x; c"]).as_deref(), Some("a=b; c"));
        assert_eq!(
            strip(&["__Host-session2=x; a__Host-session=y"]).as_deref(),
            Some("__Host-session2=x; a__Host-session=y")
        );
    }

    proptest! {
        #[test]
        fn strip_leaves_no_session_cookie_in_arbitrary_headers(mut lines: Vec<Vec<u8>>) {
            lines.push(b"__Host-session=x".to_vec());
            let headers: HeaderMap = lines
                .iter()
                .filter_map(|line| HeaderValue::from_bytes(line).ok())
                .map(|line| (header::COOKIE, line))
                .collect();
            prop_assert!(is_sent(&headers));
            let left: HeaderMap = strip(&headers).map(|cookies| (header::COOKIE, cookies)).into_iter().collect();
            prop_assert!(!is_sent(&left));
        }
    }
}
