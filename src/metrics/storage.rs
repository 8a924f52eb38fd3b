//! Counts and sizes of the data in Redis. Redis maintains each figure itself or finds it by the order of a sorted set,
//! so counting costs the same for any amount of data.

use std::time::Duration;

use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};
use upstash_rest::Command;

/// A session is online if it was seen within this time: long enough to read a page.
const ONLINE_WINDOW: Duration = Duration::from_mins(5);

/// The data in Redis at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageStats {
    /// Live sessions, and sessions that have expired since the last cleanup.
    pub sessions: u64,
    /// Sessions in shards that no new session uses, because `SHARDS` has changed. 0: all sessions are in the layout of
    /// `SHARDS`.
    pub earlier_sessions: u64,
    /// Sessions seen within the last five minutes. Visitors without a session are not counted.
    pub online: u64,
    pub ranked_items: u64,
    pub scheduled_rows: u64,
    /// Carts that ended with their session. The stream keeps about 10,000.
    pub abandoned_carts: u64,
    /// Bytes of all stored pages, including pages that expired since the last page was stored.
    pub page_bytes: u64,
    /// All keys of the database, including those of other programs.
    pub keys: u64,
}

/// Counts the sessions that were seen within the last five minutes, in one pipeline.
///
/// # Errors
/// [`Error::Redis`].
pub async fn count_online(redis: &Redis, now: Timestamp) -> Result<u64, Error> {
    let commands: Vec<_> = redis.keys().shards().map(|shard| online_command(shard, now)).collect();
    let counts: Vec<u64> = redis.all(&commands).await?;
    Ok(counts.iter().sum())
}

fn online_command(shard: Shard, now: Timestamp) -> Command {
    Command::read("ZCOUNT").arg(shard.recent()).num(now - ONLINE_WINDOW).arg("+inf")
}

/// Reads all figures in one pipeline, because they do not depend on each other. The sessions' figures are sums over the
/// shards.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_stats(redis: &Redis, now: Timestamp) -> Result<StorageStats, Error> {
    let layout = redis.keys();
    let commands_of = |shard: Shard| {
        [
            Command::read("ZCARD").arg(shard.recent()),
            online_command(shard, now),
            Command::read("XLEN").arg(shard.abandoned()),
        ]
    };
    let global_commands = [
        Command::read("ZCARD").arg(layout.ranking()),
        Command::read("ZCARD").arg(layout.schedule()),
        // In units of 64 bytes. Missing before the first page is stored.
        Command::read("ZSCORE").arg(layout.pages()).arg(""),
        Command::read("DBSIZE"),
    ];
    let commands: Vec<_> = global_commands.into_iter().chain(layout.shards().flat_map(commands_of)).collect();
    let counts: Vec<Option<u64>> = redis.all(&commands).await?;
    let counts: Vec<_> = counts.into_iter().map(Option::unwrap_or_default).collect();
    let [ranked_items, scheduled_rows, page_bytes, keys, shard_counts @ ..] = &*counts else {
        return Err(upstash_rest::Error::UnexpectedType.into());
    };
    let mut stats = StorageStats {
        sessions: 0,
        earlier_sessions: 0,
        online: 0,
        ranked_items: *ranked_items,
        scheduled_rows: *scheduled_rows,
        abandoned_carts: 0,
        page_bytes: *page_bytes * 64,
        keys: *keys,
    };
    for (shard, [sessions, online, abandoned_carts]) in layout.shards().zip(shard_counts.as_chunks().0) {
        stats.sessions += sessions;
        stats.earlier_sessions += if layout.is_in_use(shard) { 0 } else { *sessions };
        stats.online += online;
        stats.abandoned_carts += abandoned_carts;
    }
    Ok(stats)
}
