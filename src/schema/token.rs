//! Session tokens.

use std::{fmt, num::NonZeroU16};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::ports::{error::Error, random, time::Timestamp};

/// A session's token: its layout, the second at which the session began, and 128 random bits, as 28 characters of
/// base64url.
///
/// The start makes the maximum age a property of the token, without a key of its own. The layout lets `SHARDS` change
/// while sessions are live: every isolate finds a session, whatever its own `SHARDS`. The MAC of the cookie protects
/// both.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(String);

/// The bytes of a token before base64url: 1 of the layout, 4 of the Unix second (until 2106), 16 random ones.
///
/// The layout is its number of shards − 1. 0 is no mark: the book's layout, or a token of edgefront before the mark.
const TOKEN_BYTES: usize = 21;

impl Token {
    /// Draws a token for a session that begins `now`, in the book's layout.
    ///
    /// # Errors
    /// [`Error::Platform`] if the platform has no random bits.
    pub fn new(now: Timestamp) -> Result<Self, Error> {
        Self::new_in_layout(NonZeroU16::MIN, now)
    }

    /// Draws a token whose session is in any shard of the layout with so many `shards`.
    ///
    /// # Errors
    /// As [`Token::new`].
    pub fn new_in_layout(shards: NonZeroU16, now: Timestamp) -> Result<Self, Error> {
        Self::draw(shards, now, |bits| bits)
    }

    /// Draws a token whose session is in the shard `number` of `shards`. The last 16 bits select the shard; at least
    /// 120 bits stay random.
    ///
    /// # Errors
    /// As [`Token::new`].
    pub fn new_in_shard(number: u16, shards: NonZeroU16, now: Timestamp) -> Result<Self, Error> {
        Self::draw(shards, now, |bits| {
            let round = bits - bits % shards;
            // The last round may be incomplete; the round before it is complete.
            round.checked_add(number).unwrap_or(round.saturating_sub(shards.get()).saturating_add(number))
        })
    }

    /// `shard_bits` replaces the last two random bytes, which select the shard.
    fn draw(shards: NonZeroU16, now: Timestamp, shard_bits: impl Fn(u16) -> u16) -> Result<Self, Error> {
        let mut bytes = random::bytes::<TOKEN_BYTES>()?;
        bytes.split_at_mut(5).0.copy_from_slice(now.as_secs().to_be_bytes().split_at(3).1);
        let [layout, .., high, low] = &mut bytes;
        *layout = u8::try_from(shards.get() - 1).unwrap_or(u8::MAX);
        [*high, *low] = shard_bits(u16::from_be_bytes([*high, *low])).to_be_bytes();
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Reads a token. None if `text` is not a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; TOKEN_BYTES + 3];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        (length == TOKEN_BYTES).then(|| Self(text.to_owned()))
    }

    /// When the session began.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        let [_, second @ ..] = self.bytes();
        let second = second.first_chunk().map_or(0, |second| u32::from_be_bytes(*second));
        Timestamp::from_millis(u64::from(second) * 1000)
    }

    /// The layout of the session, as its number of shards. None if the token has no mark.
    #[must_use]
    pub fn layout(&self) -> Option<NonZeroU16> {
        let [mark, ..] = self.bytes();
        NonZeroU16::new(mark.into()).map(|mark| mark.saturating_add(1))
    }

    /// The number of the session's shard, from 0, in a layout of so many `shards`. Random bits select it, so that all
    /// shards get the same share of the sessions.
    #[must_use]
    pub fn shard(&self, shards: NonZeroU16) -> u16 {
        let [.., high, low, _, _, _] = self.bytes();
        u16::from_be_bytes([high, low]) % shards
    }

    /// The decoded bytes. Three zeros follow, because the decoder needs the space.
    fn bytes(&self) -> [u8; TOKEN_BYTES + 3] {
        let mut bytes = [0; TOKEN_BYTES + 3];
        // It always decodes: `draw` encoded it, or `parse` checked it.
        let _ = URL_SAFE_NO_PAD.decode_slice(&self.0, &mut bytes);
        bytes
    }

    /// The token as text, for keys and for the cookie.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Hides the token, because a token is a password.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_contains_its_start_and_is_read_back() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let token = Token::new(now).unwrap();
        assert_eq!(token.as_str().len(), 28);
        assert_eq!((token.began(), token.layout()), (now, None));
        assert_eq!(Token::parse(token.as_str()), Some(token));
    }

    #[test]
    fn a_token_names_its_layout() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        for shards in [2, 4, 255, 256].map(|shards| NonZeroU16::new(shards).unwrap()) {
            let token = Token::new_in_shard(1, shards, now).unwrap();
            assert_eq!((token.layout(), token.shard(shards), token.began()), (Some(shards), 1, now));
        }
    }

    #[test]
    fn text_that_is_not_a_token_is_refused() {
        for text in [
            "",
            "a",
            "viewed:",
            &"A".repeat(27),
            &"A".repeat(29),
            &"A".repeat(4096),
            "AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "AAAAAAAAAAAAAAAAAAAAAAAAAA:A",
        ] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }
}
