//! How much Redis holds. Every figure is one that Redis keeps by itself or finds in a sorted set by its
//! order, so counting costs the same however much there is.

use std::time::Duration;

use serde::Serialize;

use crate::{
    error::Error,
    keys,
    time::Timestamp,
    upstash::{Command, Redis},
};

/// Who was seen so recently is there now: long enough to read a page.
const ONLINE: Duration = Duration::from_mins(5);

/// What there is at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Live sessions, and those that have expired since the last cleaning.
    pub sessions: u64,
    /// Sessions that were seen in the last five minutes. Visitors without a session are not among them.
    pub online: u64,
    pub ranked_items: u64,
    pub scheduled_rows: u64,
    /// Carts that expired with their session; the stream keeps the newest 10,000 or so.
    pub abandoned_carts: u64,
    /// What stored pages take, in bytes, with those that died since the last one was stored.
    pub page_bytes: u64,
    /// All keys of the database, other programs' included.
    pub keys: u64,
}

/// Counts, in one pipeline: the figures do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn count(redis: &Redis, now: Timestamp) -> Result<Stats, Error> {
    let (sessions, online, ranked_items, scheduled_rows, abandoned_carts, page_bytes, keys) = redis
        .all(&[
            Command::read("ZCARD").arg(keys::RECENT),
            Command::read("ZCOUNT").arg(keys::RECENT).num(now - ONLINE).arg("+inf"),
            Command::read("ZCARD").arg(keys::RANKING),
            Command::read("ZCARD").arg(keys::SCHEDULE),
            Command::read("XLEN").arg(keys::ABANDONED),
            Command::read("HGET").arg(keys::BYTES).arg("total"),
            Command::read("DBSIZE"),
        ])
        .await?;
    // There is no total before the first page.
    let page_bytes = Option::unwrap_or(page_bytes, 0);
    Ok(Stats { sessions, online, ranked_items, scheduled_rows, abandoned_carts, page_bytes, keys })
}
