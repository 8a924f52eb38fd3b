//! Flash sales: a limited number of pieces, a start, an end, and one piece per user. A visitor reserves a piece for
//! some minutes and then buys it; otherwise the piece becomes available again. Concurrent visitors never reserve more
//! pieces than there are.
//!
//! A sale is a row of the row cache with these columns: `sale_starts_at`, `sale_ends_at` (Unix seconds), `sale_pieces`
//! (the limit), `sale_sold` (sold, according to the database), `sale_price_cents` and `price_cents`. So every
//! storefront that schedules such rows has flash sales. `flash:{sale}` and `held:{sale}` add the changes since the row
//! was read:
//!
//! `left = sale_pieces - max(sale_sold, sold) - held`
//!
//! `sale_sold` is some seconds old, and `sold` counts the orders that were confirmed to edgefront. Neither number
//! exceeds the true one, so their maximum does not either. The next copy of the row makes up for a lost confirmation.
//! The shop's database has the last word, because only its constraint covers every order.
//!
//! The visitor sees a reservation for [`FlashConfig::hold`](crate::config::FlashConfig). The piece stays held for
//! [`GRACE`] longer, so a payment that begins in the last second keeps its piece. Every decision uses the Worker's
//! clock.
//!
//! - [`FlashSales`]: reads a sale, reserves a piece, cancels a reservation. Reading and reserving are one script, so a
//!   page shows the numbers that a reservation is decided by.
//! - `operator`: the reservations of a sale, and a change of its pieces, for the operator.
//! - [`confirm_command`]: turns a reservation into a sold piece.
//! - [`ReservationId`], [`Reservation`], [`reservation_command`], [`read_reservation`]: a reserved piece.
//!
//! Memory: at most one reservation is stored per piece. A piece takes two or three entries: 600 bytes with the longest
//! names. All keys expire one day after the last reservation can end.

mod buyer;
mod finish;
mod operator;
mod reply;
mod reservation;
mod reserve;

use std::time::Duration;

pub use self::{
    finish::confirm_command,
    operator::Hold,
    reservation::{Reservation, ReservationId, read_reservation, reservation_command},
    reserve::ReserveOutcome,
};
use crate::{config::Config, ports::time::Timestamp, row_cache::RowSource, schema::redis::Redis};

/// Grace period: how long a piece stays held after its reservation has expired. It covers a payment that begins in the
/// last second.
pub const GRACE: Duration = Duration::from_secs(30);

/// Time that the keys of a sale outlive it, so that its page still shows the visitor's purchase.
const RETENTION: Duration = Duration::from_hours(24);

/// Access to the flash sales of a shop.
pub struct FlashSales<'a> {
    pub redis: &'a Redis,
    /// Loads a scheduled row that has no copy; None: such a sale is
    /// [`Error::NotYet`](crate::ports::error::Error::NotYet).
    pub source: Option<RowSource<'a>>,
    pub config: &'a Config,
}

/// A flash sale at one moment, as one visitor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlashSale {
    pub starts: Timestamp,
    pub ends: Timestamp,
    /// All pieces of the sale.
    pub pieces: u64,
    /// Sold pieces, as far as Redis knows.
    pub sold: u64,
    /// Pieces that can be reserved now.
    pub left: u64,
    /// Pieces that are held now, for any visitor.
    pub held: u64,
    /// The sale price of a piece; None if the row has none.
    pub price_cents: Option<i64>,
    /// The regular price; None if the row has none.
    pub list_cents: Option<i64>,
    /// The visitor's own reservation.
    pub reservation: Option<Reservation>,
    /// The visitor has bought a piece.
    pub bought: bool,
    /// The row's refresh is late by more than its period: the caller should refresh it after the response.
    pub overdue: bool,
}

/// The phase of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleState {
    Upcoming,
    Live,
    /// The sale runs and no piece is left; held pieces may become available again.
    SoldOut,
    Ended,
}

impl FlashSale {
    /// The phase at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> SaleState {
        match self {
            _ if now < self.starts => SaleState::Upcoming,
            _ if now >= self.ends => SaleState::Ended,
            Self { left: 0, .. } => SaleState::SoldOut,
            _ => SaleState::Live,
        }
    }
}

impl SaleState {
    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upcoming => "upcoming",
            Self::Live => "live",
            Self::SoldOut => "sold_out",
            Self::Ended => "ended",
        }
    }
}
