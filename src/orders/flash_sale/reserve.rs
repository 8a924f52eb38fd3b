//! Reads a flash sale and reserves a piece: one script for both.

use super::{FlashSale, FlashSales, GRACE, RETENTION, Reservation, buyer::Buyer, reply::SaleReply, reservation};
use crate::{
    ports::{error::Error, time::Timestamp},
    row_cache,
    schema::{ids::RowId, scripts::FLASH, token::Token},
    sessions::TOUCH_EVERY,
};
use upstash_rest::{Command, next_reply};

/// The result of [`FlashSales::reserve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveOutcome {
    pub sale: FlashSale,
    pub reservation: Reservation,
    /// This call made the reservation; false: the visitor had it already.
    pub created: bool,
}

/// The operation of the script.
#[derive(Clone, Copy)]
enum Operation<'a> {
    Read,
    /// `random` becomes a part of the new reservation's id.
    Reserve {
        random: &'a str,
    },
}

impl FlashSales<'_> {
    /// The sale, as the visitor with the session `token` sees it.
    ///
    /// One script. A scheduled row without a copy is loaded first, as [`row_cache::read`] does.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the row is not scheduled or is not a flash sale, [`Error::NotYet`] if it is being loaded
    /// or its source fails, [`Error::Redis`].
    pub async fn read(&self, sale: &RowId, token: Option<&Token>, now: Timestamp) -> Result<FlashSale, Error> {
        let buyer = Buyer::resolve(self.redis, token, now, &self.config.session).await?;
        let command = self.command(Operation::Read, sale, &buyer, now);
        self.run(sale, &[command], now).await?.into_sale(now)
    }

    /// Reserves a piece for the visitor, or finds the visitor's reservation.
    ///
    /// One script, because the write depends on everything that the script reads: session, stock, and earlier
    /// reservations. It is idempotent: repeated after a lost reply, it finds the reservation of the first execution.
    ///
    /// # Errors
    /// [`Error::NotSignedIn`] without a user's session, [`Error::Refused`] if there is no piece for the visitor; else
    /// as [`FlashSales::read`].
    pub async fn reserve(&self, sale: &RowId, token: &Token, now: Timestamp) -> Result<ReserveOutcome, Error> {
        let random = reservation::random_part()?;
        let buyer = Buyer::resolve(self.redis, Some(token), now, &self.config.session).await?;
        let command = self.command(Operation::Reserve { random: &random }, sale, &buyer, now);
        let commands: Vec<_> = [command].into_iter().chain(buyer.touch_command(self.redis.keys(), now)).collect();
        let reply = self.run(sale, &commands, now).await?;
        reply.outcome.refusal()?;
        let sale = reply.into_sale(now)?;
        let reservation = sale.reservation.clone().ok_or(upstash_rest::Error::UnexpectedType)?;
        let created = reservation.id.has_random_part(&random);
        Ok(ReserveOutcome { sale, reservation, created })
    }

    /// The command that reads the sale as nobody sees it.
    pub(super) fn look_command(&self, sale: &RowId, now: Timestamp) -> Command {
        self.command(Operation::Read, sale, &Buyer::Nobody, now)
    }

    fn command(&self, operation: Operation<'_>, sale: &RowId, buyer: &Buyer<'_>, now: Timestamp) -> Command {
        let layout = self.redis.keys();
        let keys = [layout.schedule(), layout.delay(), layout.row(sale), layout.flash_sale(sale), layout.holds(sale)];
        let (operation, random) = match operation {
            Operation::Read => ("look", ""),
            Operation::Reserve { random } => ("reserve", random),
        };
        let hold = self.config.flash.hold;
        Command::script(&FLASH, keys.into_iter().chain(buyer.session_keys(layout)))
            .args([operation, buyer.argument()])
            .num(now - self.config.session.idle)
            .arg(sale.as_str())
            .num(now)
            .num(now - GRACE)
            .num(now + hold)
            .arg(random)
            .num((hold + GRACE + RETENTION).as_secs())
            .num(TOUCH_EVERY.as_secs())
            .repeatable()
    }

    /// Runs `commands`, the first of which is the script. If the row has no copy, it is loaded and they run once more.
    ///
    /// One pipeline: the second command, if any, is independent of the script.
    async fn run(&self, sale: &RowId, commands: &[Command], now: Timestamp) -> Result<SaleReply, Error> {
        let reply = self.run_once(commands).await?;
        if !reply.outcome.is_copy_missing() {
            return Ok(reply);
        }
        row_cache::read(self.redis, self.source.as_ref(), sale, now).await?;
        self.run_once(commands).await
    }

    async fn run_once(&self, commands: &[Command]) -> Result<SaleReply, Error> {
        Ok(next_reply(&mut self.redis.pipeline(commands).await?.into_iter())?)
    }
}
