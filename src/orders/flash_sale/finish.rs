//! Ends a reservation: the visitor cancels it, or an order confirms it. Otherwise it expires by itself.

use super::{FlashSales, GRACE, RETENTION, ReservationId, buyer::Buyer};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{OrderId, RowId, UserId},
        keys::{Keys, ORDER_TTL},
        scripts::{FLASH_CANCEL, FLASH_CONFIRM},
        token::Token,
    },
};
use upstash_rest::Command;

impl FlashSales<'_> {
    /// Cancels the visitor's reservation: its piece is available again at once.
    ///
    /// One script, because the reservation may have expired or belong to another user. It is not repeated after a lost
    /// reply: the second execution would find no reservation.
    ///
    /// # Errors
    /// [`Error::NotSignedIn`] without a user's session, [`Error::NotFound`] if `id` is not a current reservation of
    /// this user, [`Error::Redis`].
    pub async fn cancel(&self, sale: &RowId, token: &Token, id: &ReservationId, now: Timestamp) -> Result<(), Error> {
        let (layout, session) = (self.redis.keys(), &self.config.session);
        let buyer = Buyer::resolve(self.redis, Some(token), now, session).await?;
        let keys = [layout.flash_sale(sale), layout.holds(sale)].into_iter().chain(buyer.session_keys(layout));
        let command = Command::script(&FLASH_CANCEL, keys)
            .arg(buyer.argument())
            .num(now - session.idle)
            .num(now - GRACE)
            .arg(id.as_str());
        let outcome: String = self.redis.run(command).await?;
        match outcome.as_str() {
            "returned" => Ok(()),
            "unknown" => Err(Error::NotFound("reservation")),
            "nobody" => Err(Error::NotSignedIn),
            _ => Err(upstash_rest::Error::UnexpectedType.into()),
        }
    }
}

/// The command that counts an order as a sold piece of `sale`. It ends the user's reservation, and the user can make no
/// other one. Its reply carries no information.
///
/// A script, because it counts each order once. It also counts an order whose reservation has expired, because the shop
/// did sell the piece. An order of another window changes nothing: it belongs to another sale, which is over. An order
/// belongs to the window of its first report. If the shared keys have tags, the script cannot reach the order's own key,
/// so the caller checks the first report before.
#[must_use]
pub fn confirm_command(
    keys: Keys,
    sale: &RowId,
    reservation: &ReservationId,
    user: &UserId,
    order: &OrderId,
) -> Command {
    let own_key = (!keys.has_shared_tags()).then(|| keys.order(order));
    Command::script(&FLASH_CONFIRM, [keys.flash_sale(sale), keys.holds(sale)].into_iter().chain(own_key))
        .args([reservation.window(), order.as_str(), user.as_str()])
        .num(RETENTION.as_secs())
        .num(ORDER_TTL)
        .repeatable()
}
