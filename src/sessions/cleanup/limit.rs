//! The share of each shard in [`SessionConfig::limit`].

use upstash_rest::Command;

use crate::{
    config::SessionConfig,
    ports::error::Error,
    schema::{redis::Redis, shard::Shard},
};

/// Every shard and the largest number of sessions in it, at least 1: an equal share of [`SessionConfig::limit`].
///
/// The cleanup ends the oldest session of a shard, which need not be the oldest of all. Tokens fall into shards at
/// random. So at a limit of L sessions in n shards, the number of younger sessions has a negative binomial
/// distribution: its mean is L, its standard deviation √(L·(n−1)), which is 0.12 % for 10 million sessions in 16
/// shards. After a run, the shards together hold at most L sessions.
///
/// While `SHARDS` changes, shards hold different numbers of sessions. Then a request counts them, and each shard's share
/// is proportional to its count. No session ends for the limit while all shards together are below it.
pub(super) async fn limits(redis: &Redis, config: &SessionConfig) -> Result<Vec<(Shard, u64)>, Error> {
    let (keys, limit) = (redis.keys(), config.limit);
    let shards = keys.shards();
    if !keys.is_changing() {
        let share = (limit / u64::from(keys.shard_count().get())).max(1);
        return Ok(shards.map(|shard| (shard, share)).collect());
    }
    let count = |shard: Shard| Command::read("ZCARD").arg(shard.recent());
    let counts: Vec<Option<u64>> = redis.all(&shards.clone().map(count).collect::<Vec<_>>()).await?;
    let total = counts.iter().flatten().sum::<u64>();
    let share = |count: Option<u64>| {
        if total <= limit { limit } else { (count.unwrap_or_default().saturating_mul(limit) / total).max(1) }
    };
    Ok(shards.zip(counts).map(|(shard, count)| (shard, share(count))).collect())
}
