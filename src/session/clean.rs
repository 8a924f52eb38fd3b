//! Ends sessions that nobody was seen in for the idle time, and the oldest of those over the cap. Why it exists: only a
//! sorted set knows which session is old, and Redis expires whole keys. Safe to run twice or overlapping (the script decides
//! by the count and the scores of its own moment) and safe to miss (the next run finds the same sessions).

use std::time::Duration;

use bytes::Bytes;

use super::reap::{REAP_AT_ONCE, Victim, reap, share};
use crate::{
    config::SessionConfig,
    error::Error,
    ids::UserId,
    keys::Shard,
    time::{Clock, Timestamp},
    upstash::{Command, Pairs, Redis},
};

/// How many sessions go in one request: 10 calls of the script, about 250 kB of JSON.
const BATCH: usize = 10 * REAP_AT_ONCE;

/// What is looked for before anything is done. A probe is one command for each shard, so a cron that has nothing to do costs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Are there more sessions than [`SessionConfig::limit`]?
    Overflow,
    /// Was the oldest session not seen for [`SessionConfig::idle`]?
    Idle,
    /// Clean without asking first.
    Skip,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Sessions ended.
    pub sessions: u64,
    /// Carts that ended with them, recorded in `abandoned:`.
    pub carts: u64,
    /// The time was over before the work was.
    pub unfinished: bool,
}

/// Cleans if `probe` finds something, until nothing is left (of either kind) or `budget` is over.
///
/// # Errors
/// [`Error::Redis`]; what was done until then stays done.
pub async fn clean(
    redis: &Redis,
    clock: &dyn Clock,
    config: &SessionConfig,
    probe: Probe,
    budget: Duration,
) -> Result<Cleaned, Error> {
    let started = clock.now();
    let idle_cutoff = started - config.idle;
    let mut cleaned = Cleaned::default();
    for shard in probe.finds(redis, idle_cutoff, config).await? {
        loop {
            let victims = victims(redis, shard, idle_cutoff, config).await?;
            if victims.is_empty() {
                break;
            }
            if clock.now().since(started) >= budget {
                return Ok(Cleaned { unfinished: true, ..cleaned });
            }
            let reaped = reap(redis, &victims, idle_cutoff, config).await?;
            cleaned.sessions += reaped.sessions;
            cleaned.carts += reaped.carts;
            if reaped.sessions == 0 {
                // They all came back, or another cleaner was here first: it goes on with the rest, if not the next run.
                break;
            }
        }
    }
    Ok(cleaned)
}

impl Probe {
    /// The shards to clean.
    async fn finds(self, redis: &Redis, idle_cutoff: Timestamp, config: &SessionConfig) -> Result<Vec<Shard>, Error> {
        let shards = redis.keys().shards();
        // The last but `limit`: there is one only if there are more.
        let place = format!("-{}", share(redis.keys(), config).saturating_add(1));
        let below = format!("({idle_cutoff}");
        let probe = |shard: Shard| match self {
            Self::Skip => None,
            Self::Overflow => Some(Command::read("ZRANGE").arg(shard.recent()).args([&place, &place])),
            Self::Idle => {
                let oldest = Command::read("ZRANGEBYSCORE").arg(shard.recent()).arg("-inf").arg(&below);
                Some(oldest.args(["LIMIT", "0", "1"]))
            }
        };
        let probes: Option<Vec<_>> = shards.clone().map(probe).collect();
        let Some(probes) = probes else { return Ok(shards.collect()) };
        let found: Vec<Vec<Bytes>> = redis.all(&probes).await?;
        Ok(shards.zip(found).filter(|(_, found)| !found.is_empty()).map(|(shard, _)| shard).collect())
    }
}

/// The next batch of those in `shard` that are over the cap or idle, with their users. They stand at the beginning of all sessions by
/// age; a session that ends or comes back before its turn is spared by the script.
async fn victims(
    redis: &Redis,
    shard: Shard,
    idle_cutoff: Timestamp,
    config: &SessionConfig,
) -> Result<Vec<Victim>, Error> {
    let count = Command::read("ZCARD").arg(shard.recent());
    let oldest = Command::read("ZRANGE").arg(shard.recent()).num(0).num(BATCH - 1).arg("WITHSCORES");
    // Scores as Redis wrote them: they are compared with what it has by then.
    let (count, Pairs(oldest)): (u64, Pairs<Bytes, String>) = redis.all(&[count, oldest]).await?;

    let over = usize::try_from(count.saturating_sub(share(redis.keys(), config))).unwrap_or(usize::MAX);
    let is_idle = |score: &str| score.parse().is_ok_and(|score| Timestamp::from_score(score) < idle_cutoff);
    let mut victims = Vec::new();
    for (number, (member, score)) in oldest.into_iter().enumerate() {
        if number >= over && !is_idle(&score) {
            break;
        }
        match String::from_utf8(member.clone().into()).ok().and_then(|text| Victim::expired(shard, text, score)) {
            Some(victim) => victims.push(victim),
            None => drop_stray(redis, shard, &member).await?,
        }
    }
    if victims.is_empty() {
        return Ok(victims);
    }
    let members = victims.iter().map(|victim| &victim.member);
    // Bytes, since other code of the book may have any user; one that is none of ours has no list of sessions here.
    let users: Vec<Option<Bytes>> = redis.run(Command::read("HMGET").arg(shard.login()).args(members)).await?;
    for (victim, user) in victims.iter_mut().zip(users) {
        victim.user = user.and_then(|user| UserId::parse(std::str::from_utf8(&user).ok()?).ok());
    }
    Ok(victims)
}

/// Drops what stands in `recent:` and can be nobody's token: an empty name, or bytes that are no text. Such a member has no
/// keys of its own, and it must not keep the cleaning from what stands behind it.
async fn drop_stray(redis: &Redis, shard: Shard, member: &[u8]) -> Result<(), Error> {
    // One by one, since only a single command can carry any bytes.
    redis.run::<()>(Command::write("HDEL").arg(shard.login()).arg(member).repeatable()).await?;
    Ok(redis.run(Command::write("ZREM").arg(shard.recent()).arg(member).repeatable()).await?)
}
