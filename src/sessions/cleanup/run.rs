//! Cleans one shard with two requests in flight.
//!
//! While Redis ends one batch of sessions, edgefront reads the replies to the other and writes the next request. Each
//! request ends a batch and then reads the next oldest sessions, so a batch costs one request.

use std::{cell::RefCell, collections::VecDeque};

use bytes::Bytes;
use futures_util::future::try_join;
use upstash_rest::{Command, FromReply, Pairs, Reply, parse_f64};

use super::{
    super::reap::{ReapCounts, ReapTarget, SESSIONS_PER_CALL, reap_commands},
    CleanupReport,
};
use crate::{
    ports::{budget::Budget, error::Error, time::Timestamp},
    schema::{redis::Redis, shard::Shard},
};

/// Number of sessions that one request ends: 10 script calls, about 140 kB of JSON.
const SESSIONS_PER_REQUEST: usize = 10 * SESSIONS_PER_CALL;

pub(super) struct ShardCleanup<'a> {
    pub redis: &'a Redis,
    pub shard: Shard,
    /// The largest number of sessions in the shard.
    pub limit: u64,
    pub budget: &'a Budget,
    pub idle_cutoff: Timestamp,
    pub progress: RefCell<CleanupProgress>,
}

/// The state that both requests in flight share.
pub(super) struct CleanupProgress {
    /// Sessions to end, oldest first. No request holds them yet.
    queue: VecDeque<ReapTarget>,
    /// Number of sessions in the requests in flight.
    in_flight: usize,
    pub report: CleanupReport,
}

impl CleanupProgress {
    pub fn new(report: CleanupReport) -> Self {
        Self { queue: VecDeque::new(), in_flight: 0, report }
    }
}

impl ShardCleanup<'_> {
    /// Ends sessions until none is left to end or the budget is used up.
    pub async fn run(&self) -> Result<(), Error> {
        loop {
            let ended_before = self.progress.borrow().report.sessions;
            if self.budget.spare() == 0 {
                self.progress.borrow_mut().report.unfinished = true;
                return Ok(());
            }
            self.fill_queue().await?;
            if self.progress.borrow().queue.is_empty() {
                return Ok(());
            }
            let end_batches = || Box::pin(self.end_batches());
            try_join(end_batches(), end_batches()).await?;
            if self.progress.borrow().report.sessions == ended_before {
                // All of them were touched, or another run ended them. That run, or the next, ends the rest.
                return Ok(());
            }
        }
    }

    /// Reads the oldest sessions, enough for both requests in flight.
    async fn fill_queue(&self) -> Result<(), Error> {
        self.progress.borrow_mut().queue.clear();
        let replies = self.redis.pipeline(&oldest_commands(self.shard, 0, 2 * SESSIONS_PER_REQUEST)).await?;
        self.enqueue(0, replies).await
    }

    /// Ends batch after batch, until the queue is empty, the budget is used up, or a batch ends no session.
    async fn end_batches(&self) -> Result<(), Error> {
        while self.budget.spare() > 0 {
            let (batch, skip) = {
                let mut progress = self.progress.borrow_mut();
                let count = progress.queue.len().min(SESSIONS_PER_REQUEST);
                let batch: Vec<_> = progress.queue.drain(..count).collect();
                // The sessions in flight and in the queue are older than every session not read yet. This batch ends
                // before the read.
                let skip = progress.in_flight + progress.queue.len();
                progress.in_flight += count;
                (batch, skip)
            };
            if batch.is_empty() {
                break;
            }
            let mut commands = reap_commands(&batch, None, self.idle_cutoff, self.limit);
            let calls = commands.len();
            commands.extend(oldest_commands(self.shard, skip, SESSIONS_PER_REQUEST));
            let mut replies = self.redis.pipeline(&commands).await?;
            let reads = replies.split_off(calls);
            let ended = replies.into_iter().map(|reply| <(u64, u64)>::from_reply(reply?));
            let ReapCounts { sessions, carts } = ReapCounts::sum(ended.collect::<Result<Vec<_>, _>>()?);
            {
                let mut progress = self.progress.borrow_mut();
                progress.in_flight -= batch.len();
                progress.report.sessions += sessions;
                progress.report.carts += carts;
            }
            if sessions == 0 {
                break;
            }
            self.enqueue(skip, reads).await?;
        }
        Ok(())
    }

    /// Queues the sessions in the replies to [`oldest_commands`] that are over the limit or idle. They are the first in
    /// the replies.
    ///
    /// Before its turn, a queued session may end or be touched, or a slow request may queue it again. The script does
    /// nothing then.
    async fn enqueue(&self, skip: usize, replies: Vec<Result<Reply, upstash_rest::Error>>) -> Result<(), Error> {
        // Scores stay the text that Redis wrote, because the script compares them with its own.
        let replies = replies.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (count, Pairs(oldest)): (u64, Pairs<Bytes, String>) = FromReply::from_reply(Reply::List(replies))?;
        let over_limit = usize::try_from(count.saturating_sub(self.limit)).unwrap_or(usize::MAX);
        let is_idle =
            |score: &str| parse_f64(score).is_some_and(|score| Timestamp::from_score(score) < self.idle_cutoff);
        for (position, (member, score)) in oldest.into_iter().enumerate() {
            let is_idle = is_idle(&score);
            if skip + position >= over_limit && !is_idle {
                break;
            }
            let target = std::str::from_utf8(&member)
                .ok()
                .and_then(|text| ReapTarget::expired(self.shard, text, score, is_idle));
            match target {
                Some(target) => self.progress.borrow_mut().queue.push_back(target),
                None => delete_invalid_member(self.redis, self.shard, &member).await?,
            }
        }
        Ok(())
    }
}

/// Reads the number of sessions, and the `count` oldest after the first `skip`.
fn oldest_commands(shard: Shard, skip: usize, count: usize) -> [Command; 2] {
    let last = skip + count - 1;
    let range = Command::read("ZRANGE").arg(shard.recent()).num(skip).num(last).arg("WITHSCORES");
    [Command::read("ZCARD").arg(shard.recent()), range]
}

/// Deletes a member of `recent:` that cannot be a token: an empty name, or bytes that are not UTF-8.
///
/// Such a member has no keys of its own, and it must not keep the cleanup from the sessions after it.
async fn delete_invalid_member(redis: &Redis, shard: Shard, member: &[u8]) -> Result<(), Error> {
    // Two requests, because only a single command can carry arbitrary bytes.
    redis.run::<()>(Command::write("HDEL").arg(shard.login()).arg(member).repeatable()).await?;
    Ok(redis.run(Command::write("ZREM").arg(shard.recent()).arg(member).repeatable()).await?)
}
