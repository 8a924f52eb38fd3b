//! A flash sale as its operator sees it.

use serde::Serialize;

use super::{FlashSale, FlashSales, GRACE, reply::SaleReply};
use crate::{
    ports::{database::DatabaseError, error::Error, time::Timestamp},
    row_cache,
    schema::ids::RowId,
};
use upstash_rest::{Command, Pairs};

/// The most reservations in a list.
const MAX_HOLDS: usize = 100;
/// The most pieces of a sale: `flash.lua` takes larger numbers for broken rows.
const MAX_PIECES: u64 = 99_999_999_999;

/// A reserved piece.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hold {
    pub user: String,
    /// The end of the reservation, Unix seconds. Its piece becomes available [`GRACE`] later.
    pub until: f64,
}

impl FlashSales<'_> {
    /// The sale, and its reservations, those that end first before the others, 100 at most.
    ///
    /// One pipeline, because the list is for display only. A scheduled row without a copy is not loaded.
    ///
    /// # Errors
    /// As [`FlashSales::read`].
    pub async fn read_with_holds(&self, sale: &RowId, now: Timestamp) -> Result<(FlashSale, Vec<Hold>), Error> {
        let holds = Command::read("ZRANGEBYSCORE")
            .arg(self.redis.keys().holds(sale))
            .arg(format!("({}", now - GRACE))
            .args(["+inf", "WITHSCORES", "LIMIT", "0"])
            .num(MAX_HOLDS);
        let commands = [self.look_command(sale, now), holds];
        let (reply, Pairs(holds)): (SaleReply, Pairs<String, f64>) = self.redis.all(&commands).await?;
        let sale = reply.into_sale(now)?;
        // Reservations of an earlier sale of the row may still be listed.
        let holds = if sale.held == 0 { Vec::new() } else { holds };
        Ok((sale, holds.into_iter().map(|(user, until)| Hold { user, until }).collect()))
    }

    /// Changes the number of pieces from `was` to `pieces` in the shop's database, and loads the row.
    ///
    /// Idempotent: a repeated change finds the new number. A concurrent change is not overwritten, because the statement
    /// compares the number with `was`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number of pieces that no sale can have; [`Error::Conflict`] if the database has another
    /// number than `was` or refuses `pieces`, or if the rows come from `ROWS_URL`; [`Error::NotFound`] if the row is not
    /// scheduled; [`Error::Database`], [`Error::Redis`].
    pub async fn set_pieces(&self, sale: &RowId, was: u64, pieces: u64, now: Timestamp) -> Result<(), Error> {
        if !(1..=MAX_PIECES).contains(&pieces) {
            return Err(Error::invalid("pieces", format!("must be a whole number from 1 to {MAX_PIECES}")));
        }
        row_cache::schedule_of(self.redis, sale).await?.ok_or(Error::NotFound("flash sale"))?;
        let Some(source) = &self.source else { return Err(Error::NotFound("flash sale")) };
        match source.change_number(sale, "sale_pieces", was, pieces).await {
            Ok(true) => {}
            Ok(false) => {
                return Err(Error::Conflict("the sale has another number of pieces than `was`: read it again"));
            }
            Err(Error::Database(DatabaseError::Constraint(_))) => {
                return Err(Error::Conflict("the sale has sold more pieces than that"));
            }
            Err(error) => return Err(error),
        }
        row_cache::refresh_now(self.redis, source, sale, now).await?;
        Ok(())
    }
}
