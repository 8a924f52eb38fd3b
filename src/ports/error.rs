//! What can go wrong. A variant says what the caller can do next; `routes::problem` alone picks the status for it.

use crate::{
    ports::{database::DatabaseError, fetch::FetchError},
    upstash,
};

/// An error of the domain. Messages are lower case and hold no token, cart or body.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller can correct `field`.
    #[error("{field} {rule}")]
    Invalid { field: &'static str, rule: String },
    /// There is no such thing.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The cart holds as many different items as it may.
    #[error("the cart holds {limit} different items already")]
    CartFull { limit: u32 },
    /// The same `Idempotency-Key` came with another request, or while the first is under way.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
    /// It needs a user's session, and this is a guest's or none.
    #[error("this is for visitors who are signed in")]
    NotSignedIn,
    /// Within a minute, more than the platform's rate limits let through.
    #[error("that was too often: wait a minute")]
    TooOften,
    /// There is no piece of the flash sale for this visitor.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It exists, but there is no copy of it now: it is being loaded, or its source fails. Ask again in some seconds.
    #[error("there is no copy of the {0} yet")]
    NotYet(&'static str),
    /// Redis did not do it: try later. Nothing is known to have changed.
    #[error("redis: {0}")]
    Redis(#[from] upstash::Error),
    /// The origin did not answer.
    #[error("origin: {0}")]
    Origin(#[from] FetchError),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The platform, or what is stored, is not as it must be; only an operator can help.
    #[error("{0}")]
    Platform(String),
}

/// Why a flash sale has no piece for a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the sale has not begun yet")]
    NotStarted,
    #[error("the sale is over")]
    Ended,
    /// What others hold may come back.
    #[error("every piece is sold or held for somebody")]
    SoldOut,
    #[error("you have bought one already, and there is one for each")]
    AlreadyBought,
}

impl Error {
    /// The caller can correct `field`, which breaks `rule` ("must be …").
    #[must_use]
    pub fn invalid(field: &'static str, rule: impl Into<String>) -> Self {
        Self::Invalid { field, rule: rule.into() }
    }
}
