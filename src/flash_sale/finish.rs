//! The ends of a hold: the visitor gives it back, or an order makes it a sold piece.

use super::{GRACE, KEEP, ReservationId};
use crate::{
    config::SessionConfig,
    error::Error,
    ids::{OrderId, RowId, Token, UserId},
    keys,
    time::Timestamp,
    upstash::{self, Command, Redis, Script},
};

/// Gives the visitor's piece back: it can be reserved again at once.
///
/// A script, since the hold may be over, or somebody else's. It is not sent twice: the second one would find nothing.
///
/// # Errors
/// [`Error::NotSignedIn`] without a user's session, [`Error::NotFound`] if `id` is no hold of this user, or none any more;
/// [`Error::Redis`].
pub async fn cancel(
    redis: &Redis,
    sale: &RowId,
    token: &Token,
    id: &ReservationId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<(), Error> {
    let cancel = Command::script(&FLASH_CANCEL, [keys::LOGIN, keys::RECENT, &keys::flash(sale), &keys::held(sale)])
        .arg(token.as_str())
        .num(now - config.idle)
        .num(now - GRACE)
        .arg(id.as_str());
    let outcome: String = redis.run(cancel).await?;
    match outcome.as_str() {
        "returned" => Ok(()),
        "unknown" => Err(Error::NotFound("reservation")),
        "nobody" => Err(Error::NotSignedIn),
        _ => Err(upstash::Error::UnexpectedType.into()),
    }
}

/// The call that counts an order as a sold piece of `sale`: the user's hold ends, and they can reserve no other. Once for each
/// order; also if the hold was over by then, since the order did happen. Its reply says nothing.
///
/// An order of another window than the one that runs changes nothing: it is in that sale's rows, and that sale is over.
#[must_use]
pub fn confirm(sale: &RowId, reservation: &ReservationId, user: &UserId, order: &OrderId) -> Command {
    Command::script(&FLASH_CONFIRM, [keys::flash(sale), keys::held(sale)])
        .args([reservation.window(), order.as_str(), user.as_str()])
        .num(KEEP.as_secs())
        .repeatable()
}

pub static FLASH_CANCEL: Script = Script {
    name: "flash_cancel",
    source: include_str!("../scripts/flash_cancel.lua"),
    sha1: "fc5b85835ae1b806791b44c4cbd59e2a8c9e345d",
};

pub static FLASH_CONFIRM: Script = Script {
    name: "flash_confirm",
    source: include_str!("../scripts/flash_confirm.lua"),
    sha1: "9aa8c95d050c7442f7807c284d9cbed9a7cc147c",
};
