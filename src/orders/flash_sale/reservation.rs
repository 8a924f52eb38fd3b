//! A visitor's reservation in a flash sale.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::buyer::Buyer;
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{
        ids::{RowId, UserId},
        keys::Keys,
        redis::Redis,
        scripts::FLASH_HELD,
        token::Token,
    },
};
use upstash_rest::{Command, FromReply, Reply};

/// A piece that is reserved for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub id: ReservationId,
    /// The end of the time in which the visitor may buy the piece.
    pub until: Timestamp,
}

/// The id of a [`Reservation`]: the sale's window (the Unix second of its start) and 128 random bits, as in
/// `1790000000.bTcyZTNiM2Y4YWI3NDkxOQ`.
///
/// The window makes a late order count in its own sale, and not in a later sale of the same row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReservationId(String);

/// The command that reads the [`Reservation`] of the visitor of `token`. The caller checks the session in the same
/// pipeline. The command does not read the row: a reservation can be bought even while the row has no copy.
///
/// A script, because the session names the user whose reservation is read. None if no script can use
/// both keys: the caller checks the session, then calls [`read_reservation`].
#[must_use]
pub fn reservation_command(keys: Keys, sale: &RowId, token: &Token, now: Timestamp) -> Option<Command> {
    keys.reaches_shared(token).then(|| command(keys, sale, &Buyer::Session { token, is_young: true }, now))
}

/// The reservation of `user` in `sale`; `token` is the user's session. One script, as [`reservation_command`].
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_reservation(
    redis: &Redis,
    sale: &RowId,
    token: &Token,
    user: &UserId,
    now: Timestamp,
) -> Result<Option<Reservation>, Error> {
    Ok(redis.run(command(redis.keys(), sale, &Buyer::User(token, user.clone()), now)).await?)
}

fn command(layout: Keys, sale: &RowId, buyer: &Buyer<'_>, now: Timestamp) -> Command {
    // `is_young`: the script reads `login:` only, because the caller checks the session.
    let keys = [layout.flash_sale(sale), layout.holds(sale)].into_iter().chain(buyer.session_keys(layout));
    Command::script(&FLASH_HELD, keys).arg(buyer.argument()).num(now).repeatable()
}

/// The reply to [`reservation_command`].
impl FromReply for Reservation {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        let (id, until) = <(String, f64)>::from_reply(reply)?;
        Self::read(&id, until)
    }
}

impl Reservation {
    /// A reservation from the reply of a script: its id, and the Unix second of its end.
    pub(super) fn read(id: &str, until: f64) -> Result<Self, upstash_rest::Error> {
        let id = ReservationId::parse(id).ok_or(upstash_rest::Error::UnexpectedType)?;
        Ok(Self { id, until: Timestamp::from_score(until) })
    }
}

/// Random bytes of an id, before base64url.
const RANDOM_BYTES: usize = 16;

impl ReservationId {
    /// Parses an id; None if `text` is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (window, random) = text.split_once('.')?;
        let mut bytes = [0; RANDOM_BYTES + 3];
        let length = URL_SAFE_NO_PAD.decode_slice(random, &mut bytes).ok()?;
        let is_second = (1..=11).contains(&window.len()) && window.bytes().all(|byte| byte.is_ascii_digit());
        (is_second && length == RANDOM_BYTES).then(|| Self(text.to_owned()))
    }

    /// The id as Redis and URLs contain it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The Unix second of the window's start, as the scripts write it.
    pub(in crate::orders) fn window(&self) -> &str {
        self.0.split_once('.').map_or("", |(window, _)| window)
    }

    /// Returns whether `random` is the random part of this id.
    pub(super) fn has_random_part(&self, random: &str) -> bool {
        self.0.split_once('.').is_some_and(|(_, own)| own == random)
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A new random part of an id. The script adds the window, because only the script knows which one runs.
pub(super) fn random_part() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::bytes::<RANDOM_BYTES>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_window_and_a_random_part() {
        let random = random_part().unwrap();
        let id = ReservationId::parse(&format!("1790000000.{random}")).unwrap();
        assert_eq!((id.window(), id.has_random_part(&random), id.has_random_part("")), ("1790000000", true, false));
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
