//! The ends of a hold: the visitor gives it back, or an order makes it a sold piece.

use super::{GRACE, KEEP, ReservationId, buyer::Buyer};
use crate::schema::scripts::{FLASH_CANCEL, FLASH_CONFIRM};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{OrderId, RowId, UserId},
        keys::Keys,
        token::Token,
    },
    upstash::{self, Command, Redis},
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
    let (layout, who) = (redis.keys(), Buyer::find(redis, Some(token), now, config).await?);
    let keys = [layout.flash_sale(sale), layout.holds(sale)].into_iter().chain(who.keys(layout));
    let cancel =
        Command::script(&FLASH_CANCEL, keys).arg(who.name()).num(now - config.idle).num(now - GRACE).arg(id.as_str());
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
pub fn confirm(keys: Keys, sale: &RowId, reservation: &ReservationId, user: &UserId, order: &OrderId) -> Command {
    Command::script(&FLASH_CONFIRM, [keys.flash_sale(sale), keys.holds(sale)])
        .args([reservation.window(), order.as_str(), user.as_str()])
        .num(KEEP.as_secs())
        .repeatable()
}
