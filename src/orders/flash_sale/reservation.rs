//! A visitor's piece of a flash sale, held for them for some time.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::buyer::Buyer;
use crate::schema::scripts::FLASH_HELD;
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{
        ids::{RowId, UserId},
        keys::Keys,
        token::Token,
    },
    upstash::{self, Command, FromReply, Redis, Reply},
};

/// A piece that is held for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub id: ReservationId,
    /// Until when the visitor may buy it.
    pub until: Timestamp,
}

/// The id of a [`Reservation`]: the window that it is of (the Unix second in which that begins) and 128 random bits, as in
/// `1790000000.bTcyZTNiM2Y4YWI3NDkxOQ`.
///
/// The window makes a late order count in the sale that it was of, and in no later one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReservationId(String);

/// Asks for the [`Reservation`] of the visitor of `token`, whose session the caller checks in the same pipeline. It needs no row:
/// whoever holds a piece can buy it, also while the row has no copy. A script, since the session tells whose it would be.
///
/// None in the sharded layout: no script has both keys, and the caller asks [`held_by`] when it knows whose session it is.
#[must_use]
pub fn held_for(keys: Keys, sale: &RowId, token: &Token, now: Timestamp) -> Option<Command> {
    (!keys.is_sharded()).then(|| held(keys, sale, &Buyer::Session(token), now))
}

/// The piece of `sale` that is held for `user`, whose session is `token`.
///
/// # Errors
/// [`Error::Redis`].
pub async fn held_by(
    redis: &Redis,
    sale: &RowId,
    token: &Token,
    user: &UserId,
    now: Timestamp,
) -> Result<Option<Reservation>, Error> {
    Ok(redis.run(held(redis.keys(), sale, &Buyer::User(token, user.clone()), now)).await?)
}

fn held(layout: Keys, sale: &RowId, who: &Buyer<'_>, now: Timestamp) -> Command {
    let keys = [layout.flash_sale(sale), layout.holds(sale)].into_iter().chain(who.keys(layout));
    Command::script(&FLASH_HELD, keys).arg(who.name()).num(now).repeatable()
}

/// The reply to [`held_for`].
impl FromReply for Reservation {
    fn from_reply(reply: Reply) -> Result<Self, upstash::Error> {
        let (id, until) = <(String, f64)>::from_reply(reply)?;
        let id = ReservationId::parse(&id).ok_or(upstash::Error::UnexpectedType)?;
        Ok(Self { id, until: Timestamp::from_score(until) })
    }
}

/// Random bytes of an id, before base64url.
const RANDOM_BYTES: usize = 16;

impl ReservationId {
    /// The id in `text`; None if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (window, random) = text.split_once('.')?;
        let mut bytes = [0; RANDOM_BYTES + 3];
        let length = URL_SAFE_NO_PAD.decode_slice(random, &mut bytes).ok()?;
        let is_second = (1..=11).contains(&window.len()) && window.bytes().all(|byte| byte.is_ascii_digit());
        (is_second && length == RANDOM_BYTES).then(|| Self(text.to_owned()))
    }

    /// The id as it stands in Redis and in URLs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The window's begin, as the scripts write it.
    pub(super) fn window(&self) -> &str {
        self.0.split_once('.').map_or("", |(window, _)| window)
    }

    /// Whether this is the id that was made of `random`.
    pub(super) fn is_of(&self, random: &str) -> bool {
        self.0.split_once('.').is_some_and(|(_, own)| own == random)
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What makes a new id: which window runs is known only to the script.
pub(super) fn draw() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::bytes::<RANDOM_BYTES>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_window_and_nothing_else_is_one() {
        let random = draw().unwrap();
        let id = ReservationId::parse(&format!("1790000000.{random}")).unwrap();
        assert_eq!((id.window(), id.is_of(&random), id.is_of("")), ("1790000000", true, false));
        for text in [
            "",
            ".",
            "1790000000",
            "1790000000.",
            "1790000000.AAAA",
            &format!(".{random}"),
            &format!("-1.{random}"),
            &format!("123456789012.{random}"),
            &format!("1790000000.{random}A"),
            &format!("1790000000.{random}."),
        ] {
            assert_eq!(ReservationId::parse(text), None, "{text}");
        }
    }
}
