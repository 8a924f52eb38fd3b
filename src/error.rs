//! What can go wrong. A variant says what the caller can do next; `routes::problem` alone picks the status for it.

use crate::{database::DatabaseError, fetch::FetchError, upstash};

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

impl Error {
    /// The caller can correct `field`, which breaks `rule` ("must be …").
    #[must_use]
    pub fn invalid(field: &'static str, rule: impl Into<String>) -> Self {
        Self::Invalid { field, rule: rule.into() }
    }
}
