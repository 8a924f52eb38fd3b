//! The reply of the script that reads a sale and reserves a piece.

use serde::Deserialize;

use super::{FlashSale, Reservation};
use crate::{
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    row_cache::Schedule,
};
use upstash_rest::{FromReply, Reply};

/// The reply, a JSON object.
#[derive(Deserialize)]
pub(super) struct SaleReply {
    pub outcome: SaleOutcome,
    /// The id of the visitor's reservation, and the Unix second at which it expires.
    id: Option<String>,
    until: Option<f64>,
    /// None if there is no such sale.
    #[serde(flatten)]
    sale: Option<SaleFields>,
}

/// The script's decision.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SaleOutcome {
    /// The sale was read, and no reservation was asked for.
    Seen,
    /// The visitor has a reservation, new or not.
    Held,
    /// The visitor is not signed in.
    Nobody,
    AlreadyBought,
    NotStarted,
    Ended,
    SoldOut,
    /// The row is scheduled and has no copy.
    NoCopy,
    /// The row is not scheduled, or is not a flash sale.
    NoSale,
}

#[derive(Deserialize)]
struct SaleFields {
    /// The Unix second of the row's next refresh, and the period in seconds.
    due: f64,
    every: f64,
    /// Unix seconds.
    starts: u64,
    ends: u64,
    pieces: u64,
    sold: u64,
    left: u64,
    held: u64,
    price_cents: Option<i64>,
    list_cents: Option<i64>,
    bought: bool,
}

impl FromReply for SaleReply {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        serde_json::from_str(&String::from_reply(reply)?).map_err(|_| upstash_rest::Error::UnexpectedType)
    }
}

impl SaleOutcome {
    pub fn is_copy_missing(self) -> bool {
        self == Self::NoCopy
    }

    /// The error if the script refused a reservation.
    pub fn refusal(self) -> Result<(), Error> {
        match self {
            Self::Nobody => Err(Error::NotSignedIn),
            Self::AlreadyBought => Err(Refusal::AlreadyBought.into()),
            Self::NotStarted => Err(Refusal::NotStarted.into()),
            Self::Ended => Err(Refusal::Ended.into()),
            Self::SoldOut => Err(Refusal::SoldOut.into()),
            Self::Seen | Self::Held | Self::NoCopy | Self::NoSale => Ok(()),
        }
    }
}

impl SaleReply {
    /// The sale.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::NotYet`] if the reply has none; [`Error::Redis`] if it has an invalid
    /// reservation.
    pub fn into_sale(self, now: Timestamp) -> Result<FlashSale, Error> {
        let reservation = self.reservation()?;
        let Some(fields) = self.sale else {
            let is_loading = self.outcome.is_copy_missing();
            return Err(if is_loading { Error::NotYet } else { Error::NotFound("flash sale") });
        };
        let schedule = Schedule::new(Some(fields.every), Some(fields.due));
        Ok(FlashSale {
            starts: timestamp(fields.starts),
            ends: timestamp(fields.ends),
            pieces: fields.pieces,
            sold: fields.sold,
            left: fields.left,
            held: fields.held,
            price_cents: fields.price_cents,
            list_cents: fields.list_cents,
            reservation,
            bought: fields.bought,
            overdue: schedule.is_some_and(|schedule| schedule.is_overdue(now)),
        })
    }

    fn reservation(&self) -> Result<Option<Reservation>, upstash_rest::Error> {
        let (Some(id), Some(until)) = (&self.id, self.until) else { return Ok(None) };
        Reservation::read(id, until).map(Some)
    }
}

fn timestamp(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1000))
}
