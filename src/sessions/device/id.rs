//! The public id of a device.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::schema::{hex, token::Token};

/// The public id of a session: the first 16 hexadecimal digits of SHA-256 over `device:` and its token.
///
/// Nobody can derive the token from the id, because a token has 128 random bits. With 64 bits, two sessions of one user
/// do not share an id in practice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceId(String);

impl DeviceId {
    /// The id of the session of `token`.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        // The prefix tells this hash apart from every other hash of a token.
        let mut id = hex(&Sha256::new().chain_update("device:").chain_update(token.as_str()).finalize());
        id.truncate(16);
        Self(id)
    }

    /// The id in `text`; `None` unless it is 16 lowercase hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 16 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The id as text, as in URLs and in `devices:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::time::Timestamp;

    #[test]
    fn every_token_has_its_own_id() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let (token, other) = (Token::new(now).unwrap(), Token::new(now).unwrap());
        assert_eq!(DeviceId::of(&token), DeviceId::of(&token));
        assert_ne!(DeviceId::of(&token), DeviceId::of(&other));
    }

    #[test]
    fn only_sixteen_lowercase_hexadecimal_digits_are_an_id() {
        let id = DeviceId::of(&Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap());
        assert_eq!(DeviceId::parse(id.as_str()), Some(id));
        for text in ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "others", "0123456789abcde\n"] {
            assert_eq!(DeviceId::parse(text), None, "{text}");
        }
    }
}
