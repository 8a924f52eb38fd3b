//! How much Redis holds. Every figure is one that Redis keeps by itself or finds in a sorted set by its
//! order, so counting costs the same however much there is.

use std::time::Duration;

use serde::Serialize;

use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};
use upstash_rest::Command;

/// A session seen within this time counts as online: long enough to read a page.
const ONLINE: Duration = Duration::from_mins(5);

/// The figures at one moment.
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
    /// Size of the stored pages, bytes, including pages that died since the last store.
    pub page_bytes: u64,
    /// All keys of the database, other programs' included.
    pub keys: u64,
}

/// Counts, in one pipeline: the figures do not depend on each other. Those of the sessions are sums over the shards.
///
/// # Errors
/// [`Error::Redis`].
pub async fn count(redis: &Redis, now: Timestamp) -> Result<Stats, Error> {
    let layout = redis.keys();
    let of_shard = |shard: Shard| {
        [
            Command::read("ZCARD").arg(shard.recent()),
            Command::read("ZCOUNT").arg(shard.recent()).num(now - ONLINE).arg("+inf"),
            Command::read("XLEN").arg(shard.abandoned()),
        ]
    };
    let of_all = [
        Command::read("ZCARD").arg(layout.ranking()),
        Command::read("ZCARD").arg(layout.schedule()),
        // There is no total before the first page.
        Command::read("HGET").arg(layout.bytes()).arg("total"),
        Command::read("DBSIZE"),
    ];
    let commands: Vec<_> = of_all.into_iter().chain(layout.shards().flat_map(of_shard)).collect();
    let counts: Vec<Option<u64>> = redis.all(&commands).await?;
    let counts: Vec<_> = counts.into_iter().map(Option::unwrap_or_default).collect();
    let [ranked_items, scheduled_rows, page_bytes, keys, of_shards @ ..] = &*counts else {
        return Err(upstash_rest::Error::UnexpectedType.into());
    };
    let mut stats = Stats {
        sessions: 0,
        online: 0,
        ranked_items: *ranked_items,
        scheduled_rows: *scheduled_rows,
        abandoned_carts: 0,
        page_bytes: *page_bytes,
        keys: *keys,
    };
    for [sessions, online, abandoned_carts] in of_shards.as_chunks().0 {
        stats.sessions += sessions;
        stats.online += online;
        stats.abandoned_carts += abandoned_carts;
    }
    Ok(stats)
}
