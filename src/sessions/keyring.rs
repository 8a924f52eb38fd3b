//! Signs and verifies the session cookie, whose format is in [`cookie`].
//!
//! Only a token with a valid MAC leaves [`Keyring::read`]. So a forged, truncated or foreign cookie costs no Redis
//! command. A thief with a copy of Redis cannot log in: the copy holds tokens, but no key to sign them with.

use std::{cmp::Reverse, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use sha2::Sha256;

use super::cookie;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::token::Token,
};

/// The length of an HMAC-SHA256.
const MAC_BYTES: usize = 32;

/// Number of session cookies of one request that are verified. A browser sends one; each costs one HMAC per key.
const MAX_VERIFIED_COOKIES: usize = 4;

/// The text whose MAC is the key between the tiers. No cookie begins like this.
const TIER: &str = "edgefront tier";

/// The keys of `SESSION_KEYS`, ready to sign and to verify.
#[derive(Clone)]
pub struct Keyring {
    /// The first key signs; every key verifies. `docs/operations.md` has the steps of a rotation.
    keys: Vec<Hmac<Sha256>>,
    max_age: Duration,
}

impl Keyring {
    /// A keyring of [`SessionConfig::signing_keys`] and [`SessionConfig::max_age`].
    #[must_use]
    pub fn new(config: &SessionConfig) -> Self {
        // `ok()` drops no key, because HMAC accepts keys of any length.
        let keys = config.signing_keys.iter().filter_map(|key| Hmac::new_from_slice(key.as_bytes()).ok()).collect();
        Self { keys, max_age: config.max_age }
    }

    /// The token of the session cookie, if its MAC is valid and its session began less than [`SessionConfig::max_age`]
    /// ago. Of several cookies, the latest session counts, because the others may have ended. Costs no Redis request.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, now: Timestamp) -> Option<Token> {
        cookie::values(headers)
            .take(MAX_VERIFIED_COOKIES)
            .filter_map(|value| self.verify(value))
            .filter(|token| token.began() + self.max_age > now)
            // Not `max_by_key`: of sessions of the same second, it takes the last one.
            .min_by_key(|token| Reverse(token.began()))
    }

    /// The `Cookie` header of `token`, as a browser sends it: `__Host-session=<token>.<mac>`.
    ///
    /// # Errors
    /// [`Error::Platform`] if there is no key. The configuration requires one.
    pub fn pair(&self, token: &Token) -> Result<String, Error> {
        Ok(format!("{}={}.{}", cookie::NAME, token.as_str(), self.sign(cookie::NAME, token.as_str())?))
    }

    /// The `Set-Cookie` header of `token`, whose session begins now.
    ///
    /// # Errors
    /// As [`Keyring::pair`].
    pub fn set(&self, token: &Token) -> Result<HeaderValue, Error> {
        let text = format!("{}; Max-Age={}; {}", self.pair(token)?, self.max_age.as_secs(), cookie::ATTRIBUTES);
        let mut header = HeaderValue::try_from(text).map_err(|_| Error::Platform("invalid cookie".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// The key with which the edge tier proves itself to the home tier.
    ///
    /// # Errors
    /// As [`Keyring::pair`].
    pub fn tier_key(&self) -> Result<HeaderValue, Error> {
        let text = URL_SAFE_NO_PAD.encode(self.first_key()?.clone().chain_update(TIER).finalize().into_bytes());
        let mut header = HeaderValue::try_from(text).map_err(|_| Error::Platform("invalid key".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// Returns whether `sent` is the [`Keyring::tier_key`] of one of the keys.
    #[must_use]
    pub fn is_tier_key(&self, sent: &[u8]) -> bool {
        let Ok(sent) = URL_SAFE_NO_PAD.decode(sent) else { return false };
        self.keys.iter().any(|key| key.clone().chain_update(TIER).verify_slice(&sent).is_ok())
    }

    /// The token in `value`, which is `<token>.<mac>`; `None` if the MAC is not valid.
    fn verify(&self, value: &[u8]) -> Option<Token> {
        let (token, encoded) = std::str::from_utf8(value).ok()?.split_once('.')?;
        let token = Token::parse(token)?;
        self.is_signed(cookie::NAME, token.as_str(), encoded).then_some(token)
    }

    /// The MAC of a cookie by the first key, as text.
    pub(super) fn sign(&self, name: &str, value: &str) -> Result<String, Error> {
        Ok(URL_SAFE_NO_PAD.encode(mac(self.first_key()?, name, value).finalize().into_bytes()))
    }

    fn first_key(&self) -> Result<&Hmac<Sha256>, Error> {
        self.keys.first().ok_or_else(|| Error::Platform("no session key".to_owned()))
    }

    /// Returns whether `encoded` is the MAC of a cookie by one of the keys.
    pub(super) fn is_signed(&self, name: &str, value: &str, encoded: &str) -> bool {
        // The decoder requires 3 bytes more than a MAC has, for its estimate of the length. A longer text does not fit.
        let mut buffer = [0; MAC_BYTES + 3];
        let Ok(length) = URL_SAFE_NO_PAD.decode_slice(encoded, &mut buffer) else { return false };
        let sent = buffer.get(..length).unwrap_or_default();
        // `verify_slice` compares in constant time.
        self.keys.iter().any(|key| mac(key, name, value).verify_slice(sent).is_ok())
    }
}

/// The MAC of a cookie. It covers the cookie's name, so the same key may sign other things elsewhere.
fn mac(key: &Hmac<Sha256>, name: &str, value: &str) -> Hmac<Sha256> {
    key.clone().chain_update(name).chain_update("=").chain_update(value)
}

#[cfg(test)]
mod tests {
    use http::header;
    use proptest::prelude::*;

    use super::{cookie::NAME, *};

    const DAY: Duration = Duration::from_hours(24);
    const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    fn keyring(keys: &[&str]) -> Keyring {
        let keys = keys.iter().map(|key| crate::config::Secret::new(*key)).collect();
        Keyring::new(&SessionConfig { signing_keys: keys, limit: 10, idle: DAY, max_age: 90 * DAY, view_window: DAY })
    }

    fn rotated_keyring() -> Keyring {
        keyring(&["the new key, of 32 characters ..", "the old key, of 32 characters .."])
    }

    fn old_keyring() -> Keyring {
        keyring(&["the old key, of 32 characters .."])
    }

    fn foreign_keyring() -> Keyring {
        keyring(&["somebody else's, of 32 characters"])
    }

    fn headers(cookies: &[&str]) -> HeaderMap {
        cookies.iter().map(|cookie| (header::COOKIE, HeaderValue::from_str(cookie).unwrap())).collect()
    }

    #[test]
    fn the_key_between_the_tiers_is_that_of_any_session_key() {
        let old = old_keyring().tier_key().unwrap();
        assert!(rotated_keyring().is_tier_key(old.as_bytes()) && old_keyring().is_tier_key(old.as_bytes()));
        for foreign in [foreign_keyring().tier_key().unwrap().as_bytes(), b"", b"AAAA", b"no base64!"] {
            assert!(!rotated_keyring().is_tier_key(foreign));
        }
    }

    #[test]
    fn a_cookie_is_found_anywhere_among_others() {
        let (keyring, token) = (rotated_keyring(), Token::new(NOW).unwrap());
        let pair = keyring.pair(&token).unwrap();
        for cookies in [
            vec![pair.clone()],
            vec![format!("a=b; {pair}; c=d")],
            vec!["a=b".to_owned(), format!("c=d;{pair}")],
            vec![format!("{NAME}=; {NAME}; {NAME}=forged.forged"), pair.clone()],
            vec![format!("=;;, ; {pair} ;")],
        ] {
            let cookies: Vec<_> = cookies.iter().map(String::as_str).collect();
            assert_eq!(keyring.read(&headers(&cookies), NOW), Some(token.clone()), "{cookies:?}");
        }
    }

    /// A login or a new guest gets a younger session than the one that has ended.
    #[test]
    fn the_youngest_of_several_sessions_counts() {
        let keyring = rotated_keyring();
        let [old, young] = [NOW - DAY, NOW].map(|began| Token::new(began).unwrap());
        let [old_pair, young_pair] = [&old, &young].map(|token| keyring.pair(token).unwrap());
        for lines in [[&old_pair, &young_pair], [&young_pair, &old_pair]] {
            let lines = lines.map(String::as_str);
            assert_eq!(keyring.read(&headers(&lines), NOW), Some(young.clone()), "{lines:?}");
            assert_eq!(keyring.read(&headers(&[&lines.join("; ")]), NOW), Some(young.clone()), "{lines:?}");
        }
        let other = keyring.pair(&Token::new(NOW).unwrap()).unwrap();
        assert_eq!(keyring.read(&headers(&[&young_pair, &other]), NOW), Some(young), "the first of the same second");
    }

    #[test]
    fn a_cookie_past_its_maximum_age_does_not_hide_a_later_one() {
        let keyring = rotated_keyring();
        let [expired, live] = [NOW - 91 * DAY, NOW].map(|began| Token::new(began).unwrap());
        let both = format!("{}; {}", keyring.pair(&expired).unwrap(), keyring.pair(&live).unwrap());
        assert_eq!(keyring.read(&headers(&[&both]), NOW), Some(live));
    }

    #[test]
    fn only_four_session_cookies_of_a_request_are_verified() {
        let (keyring, token) = (rotated_keyring(), Token::new(NOW).unwrap());
        let pair = keyring.pair(&token).unwrap();
        let behind = |forged: usize| format!("{}{pair}", format!("{NAME}=forged; ").repeat(forged));
        assert_eq!(keyring.read(&headers(&[&behind(3)]), NOW), Some(token));
        assert_eq!(keyring.read(&headers(&[&behind(4)]), NOW), None);
    }

    #[test]
    fn a_forged_truncated_or_foreign_cookie_is_refused() {
        let (keyring, token) = (rotated_keyring(), Token::new(NOW).unwrap());
        let pair = keyring.pair(&token).unwrap();
        let other = keyring.pair(&Token::new(NOW).unwrap()).unwrap();
        let (_, other_mac) = other.split_once('.').unwrap();
        let foreign = foreign_keyring().pair(&token).unwrap();
        for cookie in [
            String::new(),
            "; = ;".to_owned(),
            NAME.to_owned(),
            format!("{NAME}=."),
            format!("{NAME}={}", token.as_str()),
            format!("{NAME}={}.", token.as_str()),
            format!("{NAME}={}.{other_mac}", token.as_str()),
            pair.get(..pair.len() - 1).unwrap().to_owned(),
            format!("{pair}A"),
            format!("{pair}="),
            pair.replace(NAME, "session"),
            pair.replace(NAME, &NAME.to_lowercase()),
            format!("{NAME}={}", "A".repeat(100_000)),
            foreign,
        ] {
            assert_eq!(keyring.read(&headers(&[&cookie]), NOW), None, "{cookie}");
        }
        assert_eq!(keyring.read(&HeaderMap::new(), NOW), None);
    }

    #[test]
    fn the_first_key_signs_and_every_key_verifies() {
        let token = Token::new(NOW).unwrap();
        let (signed_before, signed_after) =
            (old_keyring().pair(&token).unwrap(), rotated_keyring().pair(&token).unwrap());
        assert_eq!(rotated_keyring().read(&headers(&[&signed_before]), NOW), Some(token.clone()));
        assert_eq!(rotated_keyring().read(&headers(&[&signed_after]), NOW), Some(token));
        assert_eq!(old_keyring().read(&headers(&[&signed_after]), NOW), None, "the first key signs");
    }

    #[test]
    fn a_session_ends_at_its_maximum_age_without_a_redis_command() {
        let (keyring, token) = (rotated_keyring(), Token::new(NOW).unwrap());
        let cookie = headers(&[&keyring.pair(&token).unwrap()]);
        let last = NOW + 90 * DAY - Duration::from_millis(1);
        assert_eq!(keyring.read(&cookie, last), Some(token));
        assert_eq!(keyring.read(&cookie, NOW + 90 * DAY), None);
    }

    #[test]
    fn set_restricts_the_cookie_to_this_host_and_to_http() {
        let token = Token::new(NOW).unwrap();
        let set = rotated_keyring().set(&token).unwrap();
        let (pair, attributes) = set.to_str().unwrap().split_once("; ").unwrap();
        assert_eq!(pair, rotated_keyring().pair(&token).unwrap());
        assert_eq!(attributes, "Max-Age=7776000; Path=/; HttpOnly; Secure; SameSite=Lax");
        assert!(set.is_sensitive());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_not_a_session(lines: Vec<Vec<u8>>) {
            let headers: HeaderMap = lines
                .iter()
                .filter_map(|line| HeaderValue::from_bytes(line).ok())
                .map(|line| (header::COOKIE, line))
                .collect();
            prop_assert_eq!(rotated_keyring().read(&headers, NOW), None);
        }

        #[test]
        fn one_changed_byte_breaks_a_cookie(place in 0..72_usize, byte in 0x21..0x7f_u8) {
            let token = Token::new(NOW).unwrap();
            let pair = rotated_keyring().pair(&token).unwrap();
            let mut changed = pair.clone().into_bytes();
            changed[NAME.len() + 1 + place] = byte;
            prop_assume!(changed != pair.as_bytes());
            let changed = String::from_utf8(changed).unwrap();
            prop_assert_eq!(rotated_keyring().read(&headers(&[&changed]), NOW), None);
        }
    }
}
