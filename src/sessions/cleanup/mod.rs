//! Ends idle sessions, and the oldest sessions over the limit.
//!
//! Redis expires whole keys, but only a sorted set knows the age of each session, so this is a cron job. A run is safe to
//! repeat and to overlap with another: the script decides by the count and the scores at the time of its execution. A
//! run is safe to miss: the next one finds the same sessions.

mod limit;
mod run;

use std::cell::RefCell;

use bytes::Bytes;
use upstash_rest::Command;

use self::run::{CleanupProgress, ShardCleanup};
use crate::{
    config::SessionConfig,
    ports::{budget::Budget, error::Error, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};

/// The check before a run. It costs one command per shard, so a run without work costs one command in the book's
/// layout. While `SHARDS` changes, it costs two per shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanupProbe {
    /// Clean the shards that hold more sessions than their share of [`SessionConfig::limit`].
    Overflow,
    /// Clean the shards whose oldest session was idle for [`SessionConfig::idle`] or [`SessionConfig::max_age`],
    /// whichever is shorter.
    Idle,
    /// Clean all shards without a check.
    Skip,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanupReport {
    /// Sessions ended.
    pub sessions: u64,
    /// Carts that ended with them and were recorded in `abandoned:`.
    pub carts: u64,
    /// The time or the requests ran out, so some sessions may be left.
    pub unfinished: bool,
}

/// Ends idle sessions and those over the limit, in every shard that `probe` selects, until none is left or `budget` is
/// used up. A session past [`SessionConfig::max_age`] is not live; its data stays until the session is idle, or was not
/// seen for that time.
///
/// # Errors
/// [`Error::Redis`]. Sessions that were ended before the error stay ended.
pub async fn clean(
    redis: &Redis,
    config: &SessionConfig,
    probe: CleanupProbe,
    budget: &Budget,
) -> Result<CleanupReport, Error> {
    // A session that was not seen for `max_age` is at least as old.
    let idle_cutoff = budget.now() - config.idle.min(config.max_age);
    let mut report = CleanupReport::default();
    for (shard, limit) in probe.select_shards(redis, idle_cutoff, config).await? {
        let progress = RefCell::new(CleanupProgress::new(report));
        let cleanup = ShardCleanup { redis, shard, limit, budget, idle_cutoff, progress };
        cleanup.run().await?;
        report = cleanup.progress.into_inner().report;
    }
    Ok(report)
}

impl CleanupProbe {
    /// The shards to clean, with the largest number of sessions in each.
    async fn select_shards(
        self,
        redis: &Redis,
        idle_cutoff: Timestamp,
        config: &SessionConfig,
    ) -> Result<Vec<(Shard, u64)>, Error> {
        let shards = limit::limits(redis, config).await?;
        let before_cutoff = format!("({idle_cutoff}");
        let probe = |(shard, limit): &(Shard, u64)| match self {
            Self::Skip => None,
            Self::Overflow => {
                // Counted from the youngest, this session exists only in a shard over its limit.
                let over_limit = format!("-{}", limit.saturating_add(1));
                Some(Command::read("ZRANGE").arg(shard.recent()).args([&over_limit, &over_limit]))
            }
            Self::Idle => {
                let oldest = Command::read("ZRANGEBYSCORE").arg(shard.recent()).arg("-inf").arg(&before_cutoff);
                Some(oldest.args(["LIMIT", "0", "1"]))
            }
        };
        let probes: Option<Vec<_>> = shards.iter().map(probe).collect();
        let Some(probes) = probes else { return Ok(shards) };
        let found: Vec<Vec<Bytes>> = redis.all(&probes).await?;
        Ok(shards.into_iter().zip(found).filter(|(_, found)| !found.is_empty()).map(|(shard, _)| shard).collect())
    }
}
