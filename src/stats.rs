//! How much Redis holds. Every figure is one that Redis keeps by itself, so counting costs the same however much there is.

use serde::Serialize;

use crate::{
    error::Error,
    keys,
    upstash::{Command, Redis},
};

/// What there is at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Live sessions, and those that have expired since the last cleaning.
    pub sessions: u64,
    pub ranked_items: u64,
    pub scheduled_rows: u64,
    /// Carts that expired with their session; the stream keeps the newest 10,000 or so.
    pub abandoned_carts: u64,
    /// All keys of the database, other programs' included.
    pub keys: u64,
}

/// Counts, in one pipeline: the figures do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn count(redis: &Redis) -> Result<Stats, Error> {
    let (sessions, ranked_items, scheduled_rows, abandoned_carts, keys) = redis
        .all(&[
            Command::read("ZCARD").arg(keys::RECENT),
            Command::read("ZCARD").arg(keys::RANKING),
            Command::read("ZCARD").arg(keys::SCHEDULE),
            Command::read("XLEN").arg(keys::ABANDONED),
            Command::read("DBSIZE"),
        ])
        .await?;
    Ok(Stats { sessions, ranked_items, scheduled_rows, abandoned_carts, keys })
}
