//! The error of the domain. A variant says what the caller can do next; [`problem`](super::problem) maps it to a
//! status.

use crate::ports::{database::DatabaseError, fetch::FetchError};

/// An error of the domain. Messages are lower case and hold no token, cart or body.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller can correct `field`.
    #[error("{field} {rule}")]
    Invalid { field: &'static str, rule: String },
    /// The thing does not exist.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The cart has reached `CART_MAX_LINES`.
    #[error("the cart holds {limit} different items already")]
    CartFull { limit: u32 },
    /// The `Idempotency-Key` belongs to another request, or the first request is still under way.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
    /// The present state forbids the change: read it again, or change it elsewhere.
    #[error("{0}")]
    Conflict(&'static str),
    /// The operation needs a signed-in user.
    #[error("this is for visitors who are signed in")]
    NotSignedIn,
    /// A rate limit of the platform is exceeded.
    #[error("that was too often: wait a minute")]
    TooOften,
    /// The flash sale has no piece for this visitor.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The row exists, but has no copy yet: it is being loaded, or its source fails. Retry in some seconds.
    #[error("there is no copy of the row yet")]
    NotYet,
    /// Redis failed: retry later. A write may or may not have been executed.
    #[error("redis: {0}")]
    Redis(#[from] upstash_rest::Error),
    /// The origin did not answer.
    #[error("origin: {0}")]
    Origin(#[from] FetchError),
    /// The home tier did not answer. A write may or may not have been executed.
    #[error("home tier: {0}")]
    Home(FetchError),
    /// The ESI of the origin's page cannot be processed: see [`esi`](crate::proxy::esi).
    #[error("esi: {0}")]
    Esi(String),
    /// The pages in progress leave no room in the isolate's memory: retry in some seconds.
    #[error("too many pages pass at this moment")]
    Busy,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The platform or stored data is broken; only an operator can help.
    #[error("{0}")]
    Platform(String),
}

/// The reason to refuse a visitor a piece of a flash sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the sale has not begun yet")]
    NotStarted,
    #[error("the sale is over")]
    Ended,
    /// Reserved pieces may become available again.
    #[error("every piece is sold or held for somebody")]
    SoldOut,
    #[error("you have bought one already, and there is one for each")]
    AlreadyBought,
}

impl Error {
    /// `field` violates `rule` ("must be …").
    #[must_use]
    pub fn invalid(field: &'static str, rule: impl Into<String>) -> Self {
        Self::Invalid { field, rule: rule.into() }
    }

    /// The message for the public. A message of the database or of Redis may quote data, so only its sender is named.
    #[must_use]
    pub fn public_message(&self) -> String {
        match self {
            Self::Database(_) => "database".to_owned(),
            Self::Redis(_) => "redis".to_owned(),
            _ => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_message_quotes_neither_the_database_nor_redis() {
        for (error, message) in [
            (Error::Database(DatabaseError::Failed("no such column: ada@example.org".to_owned())), "database"),
            (Error::Redis(upstash_rest::Error::Refused { code: "OOM".to_owned() }), "redis"),
            (Error::Origin(FetchError::Timeout), "origin: no answer in time"),
        ] {
            assert_eq!(error.public_message(), message);
        }
    }
}
