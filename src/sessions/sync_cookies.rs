//! The cookies with Redis' sync tokens: with read regions, they let a visitor's reads wait for the visitor's changes.
//!
//! ```text
//! Set-Cookie: __Host-session-sync-<id>=<token>.<mac>; Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax
//! ```
//!
//! Changes may overlap, and their responses may arrive in any order. A browser keeps the last cookie of a name, so one
//! name could leave the older token. Sync tokens are opaque: nobody can compare them. Therefore:
//!
//! - **A change** sets a cookie of its own name and deletes the cookies that its request carried. The primary answered it
//!   after them, so its token is later than theirs.
//! - **Several cookies** are merged by the next request: the token of one more write is later than all of them. It gets a
//!   name that depends on the merged names. So concurrent requests that merge the same cookies leave one, and each of
//!   their tokens is late enough.
//! - **A change without a response** may have been executed, and its token is not known. It sets a cookie that makes the
//!   next request merge, even if it is the only one: a mark in place of the token.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};

use super::{Keyring, cookie};
use crate::ports::{error::Error, header_names::append_text, random};

/// The time for which a visitor's reads wait for the last change, if a replica has not executed it:
/// [`MAX_REPLICA_LAG`](crate::schema::redis::MAX_REPLICA_LAG).
const SYNC_FOR: &str = "; Max-Age=600; ";

/// The longest sync token that travels in a cookie. The gateway's have 61 bytes.
const MAX_TOKEN_BYTES: usize = 512;

/// Number of these cookies that a request considers. The other ones follow with later requests.
const MAX_COOKIES: usize = 8;

/// The beginning of a mark. No base64 text begins with it.
const MARK: u8 = b'!';

/// Characters of an id, of 6 bits each.
const ID_CHARS: usize = 11;

/// The reason for a new cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncCause {
    /// The visitor's session or cart has changed.
    Change,
    /// The request carried several cookies.
    Merge,
}

/// The cookies with sync tokens of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SyncCookies {
    /// Their names, each with `;` after it.
    names: String,
    count: usize,
    token: Option<HeaderValue>,
    /// The names of those with a mark, each with `;` after it.
    marks: String,
}

impl SyncCookies {
    /// The first token with a valid MAC.
    #[must_use]
    pub const fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// Returns whether the request must merge its cookies. Forged cookies alone have nothing to merge.
    #[must_use]
    pub const fn must_merge(&self) -> bool {
        !self.marks.is_empty() || self.token.is_some() && self.count > 1
    }
}

impl Keyring {
    /// The cookies with sync tokens, and the first token with a valid MAC. A forged token would make Redis wait for a
    /// write that does not exist.
    #[must_use]
    pub fn read_sync(&self, headers: &HeaderMap) -> SyncCookies {
        let mut cookies = SyncCookies::default();
        for (name, value) in cookie::pairs_of(headers, cookie::is_sync).take(MAX_COOKIES) {
            // A name that is not UTF-8 is not edgefront's, and is not deleted.
            let Ok(name) = std::str::from_utf8(name) else { continue };
            if value.first() == Some(&MARK) {
                if self.verify_sync(value).is_some() {
                    cookies.marks += name;
                    cookies.marks.push(';');
                }
            } else {
                let decoded = || HeaderValue::from_bytes(&URL_SAFE_NO_PAD.decode(self.verify_sync(value)?).ok()?).ok();
                cookies.token = cookies.token.or_else(decoded);
            }
            cookies.names += name;
            cookies.names.push(';');
            cookies.count += 1;
        }
        cookies
    }

    /// Replaces the `carried` cookies by one with `token`, in the headers of a response.
    ///
    /// # Errors
    /// As [`Keyring::pair`]; also if the token is too long for a cookie. Then the headers do not change.
    pub fn set_sync(
        &self,
        headers: &mut HeaderMap,
        token: &HeaderValue,
        carried: &SyncCookies,
        cause: SyncCause,
    ) -> Result<(), Error> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Error::Platform("invalid cookie".to_owned()));
        }
        let token = URL_SAFE_NO_PAD.encode(token);
        delete(headers, &carried.names);
        let naming = match cause {
            // Changes in one pipeline have the same token, and so one cookie.
            SyncCause::Change => &token,
            SyncCause::Merge => &carried.names,
        };
        // After the deletions: two changes in one pipeline have the same name, and the new cookie must win.
        self.add_sync(headers, &token, naming)
    }

    /// Replaces the `carried` marks by a new one, in the headers of a response.
    ///
    /// # Errors
    /// As [`Keyring::pair`].
    pub fn mark_lost_change(&self, headers: &mut HeaderMap, carried: &SyncCookies) -> Result<(), Error> {
        delete(headers, &carried.marks);
        // Random, so that a merge of an earlier mark does not delete this one.
        let mark = format!("{}{:016x}", char::from(MARK), u64::from_le_bytes(random::bytes()?));
        self.add_sync(headers, &mark, &mark)
    }

    /// Adds a cookie with `value`, whose name depends on `naming`.
    fn add_sync(&self, headers: &mut HeaderMap, value: &str, naming: &str) -> Result<(), Error> {
        let (mac, id) = (self.sign(cookie::SYNC, value)?, self.sign(cookie::SYNC_ID, naming)?);
        let id = id.get(..ID_CHARS).unwrap_or_default();
        add(headers, &[cookie::SYNC_ID, id, "=", value, ".", &mac, SYNC_FOR, cookie::ATTRIBUTES]);
        Ok(())
    }

    /// The value without its MAC, if that is valid.
    fn verify_sync<'a>(&self, value: &'a [u8]) -> Option<&'a str> {
        let (value, mac) = std::str::from_utf8(value).ok()?.split_once('.')?;
        let is_genuine = value.len() <= MAX_TOKEN_BYTES * 4 / 3 + 3 && self.is_signed(cookie::SYNC, value, mac);
        is_genuine.then_some(value)
    }
}

/// Deletes the cookies of these names, each with `;` after it.
fn delete(headers: &mut HeaderMap, names: &str) {
    for name in names.split_terminator(';') {
        add(headers, &[name, "=; Max-Age=0; ", cookie::ATTRIBUTES]);
    }
}

/// Appends a `Set-Cookie`. Its parts are ASCII, or come from a header.
fn add(headers: &mut HeaderMap, parts: &[&str]) {
    append_text(headers, header::SET_COOKIE, parts.concat());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        config::{Secret, SessionConfig},
        schema::redis::MAX_REPLICA_LAG,
    };

    fn keyring(keys: &[&str]) -> Keyring {
        let day = Duration::from_hours(24);
        let signing_keys = keys.iter().map(|key| Secret::new(*key)).collect();
        Keyring::new(&SessionConfig { signing_keys, limit: 10, idle: day, max_age: 90 * day, view_window: day })
    }

    fn old() -> Keyring {
        keyring(&["the old key, of 32 characters .."])
    }

    fn read(cookies: &str) -> SyncCookies {
        let keyring = keyring(&["the new key, of 32 characters ..", "the old key, of 32 characters .."]);
        keyring.read_sync(&[(header::COOKIE, HeaderValue::from_str(cookies).unwrap())].into_iter().collect())
    }

    fn set_by(keyring: &Keyring, token: &str, carried: &SyncCookies, cause: SyncCause) -> Result<Vec<String>, Error> {
        let mut headers = HeaderMap::new();
        keyring.set_sync(&mut headers, &HeaderValue::from_str(token).unwrap(), carried, cause)?;
        Ok(headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap().to_owned()).collect())
    }

    fn lines(token: &str, carried: &SyncCookies, cause: SyncCause) -> Vec<String> {
        set_by(&old(), token, carried, cause).unwrap()
    }

    /// The cookie of a change.
    fn change(token: &str) -> String {
        let [line] = lines(token, &SyncCookies::default(), SyncCause::Change).try_into().unwrap();
        let (pair, attributes) = line.split_once("; ").unwrap();
        let seconds = MAX_REPLICA_LAG.as_secs();
        assert_eq!(attributes, format!("Max-Age={seconds}; Path=/; HttpOnly; Secure; SameSite=Lax"));
        pair.to_owned()
    }

    fn name(pair: &str) -> &str {
        pair.split('=').next().unwrap()
    }

    #[test]
    fn a_token_is_read_as_it_was_set_and_no_other_text_is_one() {
        let (token, pair) = ("AAAx:1,BBB:2 \"=\"", change("AAAx:1,BBB:2 \"=\""));
        assert_eq!(read(&pair).token().unwrap(), token);
        let foreign = keyring(&["somebody else's, of 32 characters"]);
        let foreign = set_by(&foreign, "1", &read(""), SyncCause::Change).unwrap();
        let (text, mac) = pair.split_once('.').unwrap();
        for forged in [
            text,
            &format!("{text}."),
            &format!("{text}A.{mac}"),
            &format!("{text}.A{mac}"),
            &format!("{}={}", cookie::SYNC_ID, text.split_once('=').unwrap().1),
            foreign[0].split(';').next().unwrap(),
        ] {
            assert_eq!(read(forged).token(), None, "{forged}");
        }
        assert!(read("__Host-session=a; __Host-session-sync2=b; c=d; __Host-session-sync") == SyncCookies::default());
        assert_eq!(read(&change(&"x".repeat(512))).token().unwrap(), &"x".repeat(512));
        assert!(set_by(&old(), &"x".repeat(513), &read(""), SyncCause::Change).is_err());
    }

    #[test]
    fn a_change_has_a_cookie_of_its_own_and_deletes_those_of_its_request() {
        let (one, other) = (change("1"), change("2"));
        assert_ne!(name(&one), name(&other));
        assert_eq!(one, change("1"), "changes in one pipeline share a cookie");
        let carried = read(&format!("a=b; {one}; __Host-session-sync-x=x.y"));
        assert_eq!(carried.token().unwrap(), "1");
        let deleted = |name: &str| format!("{name}=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax");
        let [first, second, last] = lines("2", &carried, SyncCause::Change).try_into().unwrap();
        assert_eq!([first, second], [deleted(name(&one)), deleted("__Host-session-sync-x")]);
        assert_eq!(last.split_once(';').unwrap().0, other);
        // The cookie of the same token is deleted first, then set.
        let [first, last] = lines("1", &read(&one), SyncCause::Change).try_into().unwrap();
        assert!(first == deleted(name(&one)) && last.starts_with(&one));
    }

    #[test]
    fn requests_that_merge_the_same_cookies_agree_on_the_name() {
        let (one, other, third) = (change("1"), change("2"), change("3"));
        let merge = |cookies: &str, token: &str| {
            let lines = lines(token, &read(cookies), SyncCause::Merge);
            name(lines.last().unwrap()).to_owned()
        };
        let both = format!("{one}; {other}");
        assert!(read(&both).must_merge() && !read(&one).must_merge());
        assert_eq!(merge(&both, "4"), merge(&both, "5"));
        let names = [merge(&both, "4"), merge(&format!("{one}; {third}"), "4"), name(&change("4")).to_owned()];
        assert!(names[0] != names[1] && names[0] != names[2] && names[1] != names[2], "{names:?}");
    }

    #[test]
    fn a_mark_alone_demands_a_merge_and_hides_no_token() {
        let mark = || {
            let mut headers = HeaderMap::new();
            old().mark_lost_change(&mut headers, &SyncCookies::default()).unwrap();
            let line = headers[header::SET_COOKIE].to_str().unwrap().to_owned();
            line.split_once(';').unwrap().0.to_owned()
        };
        let (one, other) = (mark(), mark());
        assert_ne!(name(&one), name(&other));
        assert!(read(&one).must_merge() && read(&one).token().is_none());
        let both = read(&format!("{one}; {}", change("1")));
        assert_eq!(both.token().unwrap(), "1");
        assert_eq!(lines("2", &both, SyncCause::Merge).len(), 3, "both are deleted");
        let mut headers = HeaderMap::new();
        old().mark_lost_change(&mut headers, &both).unwrap();
        assert_eq!(headers.get_all(header::SET_COOKIE).iter().count(), 2, "the mark is replaced, the token stays");
        assert!(!read(&one.replace('!', "!!")).must_merge(), "forged");
    }

    #[test]
    fn forged_cookies_merge_nothing_and_a_request_considers_eight() {
        let forged: Vec<_> = (0..9).map(|number| format!("__Host-session-sync-{number}=x.y")).collect();
        assert!(!read(&forged.join("; ")).must_merge());
        let genuine = change("1");
        let before = |count: usize| read(&format!("{}; {genuine}", forged[..count].join("; ")));
        assert!(before(7).must_merge());
        assert_eq!(before(8).token(), None);
        assert_eq!(lines("1", &before(9), SyncCause::Merge).len(), 9);
    }
}
