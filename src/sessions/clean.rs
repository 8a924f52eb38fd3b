//! Ends sessions that nobody was seen in for the idle time, and the oldest of those over the cap. Why it exists: only a
//! sorted set knows which session is old, and Redis expires whole keys. Safe to run twice or overlapping (the script decides
//! by the count and the scores of its own moment) and safe to miss (the next run finds the same sessions).
//!
//! Two requests are under way at a time, so that Redis ends one batch while this side reads the replies to the other and
//! writes the next. Each request ends its batch and then reads who comes next: one request a batch in all.

use std::{cell::RefCell, collections::VecDeque};

use bytes::Bytes;
use futures_util::future::try_join;

use super::reap::{REAP_AT_ONCE, Reaped, Victim, reap_commands, share};
use crate::{
    config::SessionConfig,
    ports::{budget::Budget, error::Error, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};
use upstash_rest::{Command, FromReply, Pairs, Reply, parse_f64};

/// How many sessions go in one request: 10 calls of the script, about 140 kB of JSON.
const BATCH: usize = 10 * REAP_AT_ONCE;

/// What is looked for before anything is done. A probe is one command for each shard, so a cron that has nothing to do costs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanupProbe {
    /// Are there more sessions than [`SessionConfig::limit`]?
    Overflow,
    /// Was the oldest session not seen for [`SessionConfig::idle`]?
    Idle,
    /// Clean without asking first.
    Skip,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanupReport {
    /// Sessions ended.
    pub sessions: u64,
    /// Carts that ended with them, recorded in `abandoned:`.
    pub carts: u64,
    /// There may be more: the time was over before the work was, or there were no requests left.
    pub unfinished: bool,
}

/// Cleans if `probe` finds something, until nothing is left (of either kind) or `budget` is over.
///
/// # Errors
/// [`Error::Redis`]; what was done until then stays done.
pub async fn clean(
    redis: &Redis,
    config: &SessionConfig,
    probe: CleanupProbe,
    budget: &Budget,
) -> Result<CleanupReport, Error> {
    let idle_cutoff = budget.now() - config.idle;
    let mut cleaned = CleanupReport::default();
    for shard in probe.finds(redis, idle_cutoff, config).await? {
        let run = Run { redis, shard, config, budget, idle_cutoff, state: RefCell::new(State::new(cleaned)) };
        run.clean().await?;
        cleaned = run.state.into_inner().cleaned;
    }
    Ok(cleaned)
}

impl CleanupProbe {
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

/// The cleaning of a shard.
struct Run<'a> {
    redis: &'a Redis,
    shard: Shard,
    config: &'a SessionConfig,
    budget: &'a Budget,
    idle_cutoff: Timestamp,
    state: RefCell<State>,
}

struct State {
    /// Who was read and is to end next, oldest first.
    next: VecDeque<Victim>,
    /// How many of them are on their way to Redis.
    under_way: usize,
    cleaned: CleanupReport,
}

impl State {
    fn new(cleaned: CleanupReport) -> Self {
        Self { next: VecDeque::new(), under_way: 0, cleaned }
    }
}

impl Run<'_> {
    async fn clean(&self) -> Result<(), Error> {
        loop {
            let before = self.state.borrow().cleaned.sessions;
            if self.budget.spare() == 0 {
                self.state.borrow_mut().cleaned.unfinished = true;
                return Ok(());
            }
            self.look().await?;
            if self.state.borrow().next.is_empty() {
                return Ok(());
            }
            let work = || Box::pin(self.work());
            try_join(work(), work()).await?;
            if self.state.borrow().cleaned.sessions == before {
                // They all came back, or another cleaner was here first: it goes on with the rest, if not the next run.
                return Ok(());
            }
        }
    }

    /// Reads the oldest, for both requests that are to be under way.
    async fn look(&self) -> Result<(), Error> {
        self.state.borrow_mut().next.clear();
        let replies = self.redis.pipeline(&oldest(self.shard, 0, 2 * BATCH)).await?;
        self.queue(0, replies).await
    }

    /// Ends batch after batch, as long as there is one and `budget` has something left for it, and it is of use.
    async fn work(&self) -> Result<(), Error> {
        while self.budget.spare() > 0 {
            let (batch, ahead) = {
                let mut state = self.state.borrow_mut();
                let count = state.next.len().min(BATCH);
                let batch: Vec<_> = state.next.drain(..count).collect();
                // Those on the way and those to come still stand before the ones that nobody has read.
                let ahead = state.under_way + state.next.len();
                state.under_way += count;
                (batch, ahead)
            };
            if batch.is_empty() {
                break;
            }
            let mut commands = reap_commands(self.redis.keys(), &batch, None, self.idle_cutoff, self.config);
            let calls = commands.len();
            commands.extend(oldest(self.shard, ahead, BATCH));
            let mut replies = self.redis.pipeline(&commands).await?;
            let reads = replies.split_off(calls);
            let ended = replies.into_iter().map(|reply| <(u64, u64)>::from_reply(reply?));
            let Reaped { sessions, carts } = Reaped::of(ended.collect::<Result<Vec<_>, _>>()?);
            {
                let mut state = self.state.borrow_mut();
                state.under_way -= batch.len();
                state.cleaned.sessions += sessions;
                state.cleaned.carts += carts;
            }
            if sessions == 0 {
                break;
            }
            self.queue(ahead, reads).await?;
        }
        Ok(())
    }

    /// Queues those of the replies to [`oldest`] that are over the cap or idle. They stand at the beginning of all
    /// sessions by age; what is queued twice (a batch came late), ends or comes back before its turn is spared by the script.
    async fn queue(&self, ahead: usize, replies: Vec<Result<Reply, upstash_rest::Error>>) -> Result<(), Error> {
        // Scores as Redis wrote them: they are compared with what it has by then.
        let replies = replies.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (count, Pairs(oldest)): (u64, Pairs<Bytes, String>) = FromReply::from_reply(Reply::List(replies))?;
        let over = usize::try_from(count.saturating_sub(share(self.redis.keys(), self.config))).unwrap_or(usize::MAX);
        let is_idle =
            |score: &str| parse_f64(score).is_some_and(|score| Timestamp::from_score(score) < self.idle_cutoff);
        for (number, (member, score)) in oldest.into_iter().enumerate() {
            let is_idle = is_idle(&score);
            if ahead + number >= over && !is_idle {
                break;
            }
            match std::str::from_utf8(&member).ok().and_then(|text| Victim::expired(self.shard, text, score, is_idle)) {
                Some(victim) => self.state.borrow_mut().next.push_back(victim),
                None => drop_stray(self.redis, self.shard, &member).await?,
            }
        }
        Ok(())
    }
}

/// Asks how many sessions there are, and for `count` of them by age, but for the `ahead` oldest.
fn oldest(shard: Shard, ahead: usize, count: usize) -> [Command; 2] {
    let last = ahead + count - 1;
    let range = Command::read("ZRANGE").arg(shard.recent()).num(ahead).num(last).arg("WITHSCORES");
    [Command::read("ZCARD").arg(shard.recent()), range]
}

/// Drops what stands in `recent:` and can be nobody's token: an empty name, or bytes that are no text. Such a member has no
/// keys of its own, and it must not keep the cleaning from what stands behind it.
async fn drop_stray(redis: &Redis, shard: Shard, member: &[u8]) -> Result<(), Error> {
    // One by one, since only a single command can carry any bytes.
    redis.run::<()>(Command::write("HDEL").arg(shard.login()).arg(member).repeatable()).await?;
    Ok(redis.run(Command::write("ZREM").arg(shard.recent()).arg(member).repeatable()).await?)
}
