//! The session cookie: `__Host-session=<token>.<mac>`. Only what a key of ours has signed is ever a token, so a forged,
//! truncated or foreign cookie costs no Redis call, and a stolen copy of Redis can not log in.
//!
//! `__Host-` makes browsers insist on `Secure` and `Path=/` and refuse a `Domain`: a sibling host can not plant a session.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue, header};
use sha2::Sha256;

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::token::Token,
};

/// The cookie's name.
pub const NAME: &str = "__Host-session";

const MAC_BYTES: usize = 32;

/// How many cookies of our name are looked at in one request: a browser sends one, and each more costs an HMAC a key.
const MOST_CANDIDATES: usize = 4;

/// The keys of `SESSION_KEYS`, ready to sign and to verify.
#[derive(Clone)]
pub struct Keyring {
    /// The first signs, all are accepted: a new key is put in front, and the old one stays until its cookies have expired.
    keys: Vec<Hmac<Sha256>>,
    max_age: Duration,
}

impl Keyring {
    /// The keys of `config`, and how long a session lasts at the most.
    #[must_use]
    pub fn new(config: &SessionConfig) -> Self {
        // HMAC takes keys of any length: none is lost here.
        let keys = config.signing_keys.iter().filter_map(|key| Hmac::new_from_slice(key.as_bytes()).ok()).collect();
        Self { keys, max_age: config.max_age }
    }

    /// The token that the request's cookies carry: the first that is whole, signed by one of the keys, and of a session that
    /// began less than the maximum age ago. None for everything else; Redis is not asked.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, now: Timestamp) -> Option<Token> {
        cookies(headers)
            .filter_map(|cookie| cookie.strip_prefix(NAME.as_bytes())?.strip_prefix(b"="))
            .take(MOST_CANDIDATES)
            .find_map(|value| self.verify(value))
            .filter(|token| token.began() + self.max_age > now)
    }

    /// `__Host-session=<token>.<mac>`, as a browser sends it back.
    ///
    /// # Errors
    /// [`Error::Platform`] if there is no key; the configuration does not allow that.
    pub fn pair(&self, token: &Token) -> Result<String, Error> {
        let key = self.keys.first().ok_or_else(|| Error::Platform("no session key".to_owned()))?;
        let mac = signed(key, token.as_str()).finalize().into_bytes();
        Ok(format!("{NAME}={}.{}", token.as_str(), URL_SAFE_NO_PAD.encode(mac)))
    }

    /// The `Set-Cookie` of a session that begins now.
    ///
    /// # Errors
    /// As [`Keyring::pair`].
    pub fn set(&self, token: &Token) -> Result<HeaderValue, Error> {
        let cookie = format!("{}; Max-Age={}; {ATTRIBUTES}", self.pair(token)?, self.max_age.as_secs());
        let mut cookie = HeaderValue::try_from(cookie).map_err(|_| Error::Platform("no cookie".to_owned()))?;
        cookie.set_sensitive(true);
        Ok(cookie)
    }

    fn verify(&self, value: &[u8]) -> Option<Token> {
        let (token, mac) = std::str::from_utf8(value).ok()?.split_once('.')?;
        let token = Token::parse(token)?;
        // Three bytes more than a MAC has: the decoder wants room for its estimate, and a longer text does not fit.
        let mut bytes = [0; MAC_BYTES + 3];
        let length = URL_SAFE_NO_PAD.decode_slice(mac, &mut bytes).ok()?;
        let mac = bytes.get(..length)?;
        // `verify_slice` compares in constant time.
        self.keys.iter().any(|key| signed(key, token.as_str()).verify_slice(mac).is_ok()).then_some(token)
    }
}

const ATTRIBUTES: &str = "Path=/; HttpOnly; Secure; SameSite=Lax";

/// The `Set-Cookie` that makes a browser forget the session.
#[must_use]
pub const fn clear() -> HeaderValue {
    HeaderValue::from_static("__Host-session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax")
}

/// Whether the request carries a cookie of our name, whatever it is worth.
#[must_use]
pub fn is_sent(headers: &HeaderMap) -> bool {
    cookies(headers).any(is_ours)
}

/// The request's `Cookie` header without ours, for the origin; None if nothing else is in it.
#[must_use]
pub fn strip(headers: &HeaderMap) -> Option<HeaderValue> {
    let others: Vec<_> = cookies(headers).filter(|cookie| !cookie.is_empty() && !is_ours(cookie)).collect();
    // All bytes come from header values, so they can stand in one again.
    (!others.is_empty()).then(|| HeaderValue::from_bytes(&others.join(b"; ".as_slice())).ok())?
}

fn is_ours(cookie: &[u8]) -> bool {
    cookie.split(|byte| *byte == b'=').next() == Some(NAME.as_bytes())
}

/// What is signed: the name is part of it, so that the same key may sign other things elsewhere.
fn signed(key: &Hmac<Sha256>, token: &str) -> Hmac<Sha256> {
    key.clone().chain_update(NAME).chain_update("=").chain_update(token)
}

/// Each cookie of each `Cookie` header, as it stands there without the spaces around it.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii))
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
