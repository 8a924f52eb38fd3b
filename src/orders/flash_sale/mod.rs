//! Flash sales: limited pieces, a start and an end, one piece for each user. Of any number of visitors who try at once, no more
//! get a piece than there are; each has it held for some time, and either buys it or it comes back.
//!
//! What a sale is stands in its row, as the row cache keeps it: `sale_starts_at`, `sale_ends_at` (Unix seconds), `sale_pieces`
//! (the limit), `sale_sold` (how many the database has sold), `sale_price_cents` and `price_cents`. So every storefront whose
//! rows are scheduled has flash sales. `flash:{sale}` and `held:{sale}` add what has happened since the row was read:
//!
//! `left = sale_pieces - max(sale_sold, sold) - holds`
//!
//! Neither `sale_sold` (some seconds old) nor `sold` (the orders that were confirmed to us) is ever more than what was sold, so
//! their maximum is not either, and a confirmation that was lost is made good by the next copy of the row. The shop's database
//! has the last word: only its constraint can know every order.
//!
//! A hold is told to the visitor as [`FlashConfig::hold`](crate::config::FlashConfig) long and kept [`GRACE`] longer: a payment
//! that began in its last second does not lose its piece. The clock is the Worker's, in every decision.
//!
//! - [`ReservationId`], [`Reservation`], [`held_for`], [`held_by`]: a piece that is held.
//! - [`look`], [`reserve`]: one script, so that what is shown and what decides is the same.
//! - [`cancel`], [`confirm`]: the two ends of a hold; its third is time.
//!
//! Memory: no more holds are stored than there are pieces; a piece takes two or three entries, 600 bytes with the longest names.
//! All of it expires a day after the last hold can end.

mod buyer;
mod finish;
mod reservation;
mod visit;

use std::time::Duration;

pub use self::{
    finish::{cancel, confirm},
    reservation::{Reservation, ReservationId, held_by, held_for},
    visit::{ReserveOutcome, look, reserve},
};
use crate::ports::time::Timestamp;

/// How long a hold is kept beyond what the visitor was told: what the payment of the last second may take.
pub const GRACE: Duration = Duration::from_secs(30);

/// How long the keys of a sale outlive it: its page still tells who has bought.
const KEEP: Duration = Duration::from_hours(24);

/// A flash sale at one moment, as one visitor finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlashSale {
    pub starts: Timestamp,
    pub ends: Timestamp,
    /// How many there are in all.
    pub pieces: u64,
    /// How many can be reserved now.
    pub left: u64,
    /// How many are held now, by anybody.
    pub held: u64,
    /// The sale price of a piece; None if the row has none.
    pub price_cents: Option<i64>,
    /// The regular price.
    pub list_cents: Option<i64>,
    /// The piece that is held for the visitor.
    pub reservation: Option<Reservation>,
    /// The visitor has bought one.
    pub bought: bool,
    /// The row's turn was missed by more than its period: the caller should refresh it behind the answer.
    pub overdue: bool,
}

/// Where a sale is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleState {
    Upcoming,
    Live,
    /// It runs, and nothing is left: what is held may come back.
    SoldOut,
    Ended,
}

impl FlashSale {
    /// Where it is `now`.
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
    /// As the API says it.
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
