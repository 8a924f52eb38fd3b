//! Writes pending activity to Redis, in a background task of one request at a time.

use std::{rc::Rc, time::Duration};

use super::{
    Activity, ViewSource,
    pace::{LevelChange, Observation},
    pending::{Batch, PendingTouch},
};
use crate::{
    ports::{
        answer::BackgroundTask, error::Error, random, rate_limit::RateLimit, sort, time::Clock, time::Timestamp,
        writer_lease::LeaseHolder,
    },
    ranking,
    schema::{keys::Keys, redis::Redis, shard::Shard},
    sessions::{self, TouchOutcome},
};
use upstash_rest::{Command, FromReply, Reply};

/// The deadline of one pipeline; no visitor waits for it.
const BATCH_DEADLINE: Duration = Duration::from_secs(5);
/// Shortest time that a pipeline waits for further activity, unless it is full.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest time in which the task of one request starts pipelines, also for the activity of other requests. It exceeds
/// the longest interval. A Worker has 30 s after its response (`waitUntil`), which includes the last pipeline.
const MAX_WRITE_TIME: Duration = Duration::from_secs(17);
/// A lease outlives the rate limit's answers and one pipeline.
const WRITER_LEASE: Duration = BATCH_DEADLINE.saturating_mul(2);

impl Activity {
    /// The time until the next write.
    fn pause(&self, now: Timestamp) -> Duration {
        let pace = self.pace.borrow();
        if pace.level() == 0 {
            return if self.has_full_batch() { Duration::ZERO } else { MIN_PAUSE };
        }
        // Without random bits, all isolates have the same interval.
        let random = random::bytes().map_or(128, |[byte]| byte);
        // A write in the future is from before the clock was set back.
        let due = self.written.get().filter(|written| *written <= now);
        due.map_or(now, |written| written + pace.interval(random)).since(now).max(MIN_PAUSE)
    }

    /// A task that writes all pending activity. None if there is none, or another request's task writes already.
    #[must_use]
    pub fn flush(
        self: &Rc<Self>,
        redis: &Rc<Redis>,
        clock: &Rc<dyn Clock>,
        view_limit: &RateLimit,
        now: Timestamp,
    ) -> Option<BackgroundTask> {
        self.acquire_writer_lease(now, WRITER_LEASE).map(|holder| -> BackgroundTask {
            let activity = self.clone();
            let (redis, clock, view_limit) = (redis.clone(), clock.clone(), view_limit.clone());
            Box::pin(async move {
                let redis = redis.with_deadline(BATCH_DEADLINE);
                Writer { activity: &activity, holder, redis, clock, view_limit }.write_all().await;
            })
        })
    }
}

/// The holder of the writer's lease.
struct Writer<'a> {
    activity: &'a Activity,
    holder: LeaseHolder,
    redis: Redis,
    clock: Rc<dyn Clock>,
    view_limit: RateLimit,
}

impl Writer<'_> {
    /// Writes in the intervals of the [`pace`](super::pace) until nothing is pending. After [`MAX_WRITE_TIME`], and after
    /// a failure, it leaves the rest to the next request: so no request repeats a write that Redis refused. If the lease
    /// expired, it leaves the rest to its successor.
    async fn write_all(&self) {
        let Activity { pending, writer_lease, written, .. } = self.activity;
        let end = self.clock.now() + MAX_WRITE_TIME;
        while !pending.borrow().is_empty() {
            let now = self.clock.now();
            let pause = self.activity.pause(now);
            if now + pause > end {
                break;
            }
            if !writer_lease.renew(self.holder, now, pause + WRITER_LEASE) {
                break;
            }
            if !pause.is_zero() {
                self.clock.sleep(pause).await;
            }
            // Visitors' calls come first: if Redis has refused one, this write waits for the longer interval.
            if self.observe(None, false) == LevelChange::Raised {
                continue;
            }
            self.activity.check_view_limit(&self.view_limit).await;
            let is_answered = self.send_batches(end).await;
            written.set(Some(self.clock.now()));
            if !is_answered {
                break;
            }
        }
        writer_lease.release(self.holder);
    }

    /// Sends what is pending now, one pipeline after another. It stops after the level rises, so that the level
    /// rises at most once in an interval, and at `end`. Returns false after a failure, and without the lease.
    async fn send_batches(&self, end: Timestamp) -> bool {
        let Activity { pace, pending, writer_lease, .. } = self.activity;
        let size = pace.borrow().batch_size();
        let batches = pending.borrow().full_batches(size).max(1);
        for _ in 0..batches {
            let begin = self.clock.now();
            if begin > end {
                break;
            }
            if !writer_lease.renew(self.holder, begin, WRITER_LEASE) {
                return false;
            }
            let result = self.send_batch().await;
            let is_refused = result == Err(Error::Redis(upstash_rest::Error::Quota));
            let latency = matches!(result, Ok(1..)).then(|| self.clock.now().since(begin));
            let change = self.observe(latency, is_refused);
            if let Err(error) = result {
                let level = self.activity.pace().level();
                let fate = if is_refused { "waits" } else { "is lost" };
                log::warn!("a batch of views {fate}, and the pace is at level {level}: {error}");
                return false;
            }
            if change == LevelChange::Raised {
                break;
            }
        }
        true
    }

    /// Adjusts the pace to what this isolate saw since the last time.
    fn observe(&self, latency: Option<Duration>, is_refused: bool) -> LevelChange {
        let Activity { pace, seen_troubles, .. } = self.activity;
        let now = self.redis.meter().troubles();
        let before = seen_troubles.replace(now);
        let observation = Observation {
            is_refused: is_refused || now.refused > before.refused,
            is_silent: now.silent > before.silent,
            latency,
        };
        pace.borrow_mut().observe(observation, self.clock.now())
    }

    /// Sends one pipeline: its commands do not depend on each other. The replies to the touches say which views count;
    /// the next pipeline writes those. What Redis refused because of a limit is pending again. Returns the number of
    /// commands.
    async fn send_batch(&self) -> Result<usize, Error> {
        let keys = self.redis.keys();
        let pace = self.activity.pace();
        let mut batch = self.activity.pending.borrow_mut().take_batch(&pace);
        sort::sort_by(&mut batch.touches, |one, other| shard_of(keys, one).cmp(&shard_of(keys, other)));
        let commands = self.commands(&batch);
        if commands.is_empty() {
            return Ok(0);
        }

        let replies = match self.redis.pipeline(&commands).await {
            Err(upstash_rest::Error::Quota) => vec![Err(upstash_rest::Error::Quota); commands.len()],
            replies => replies?,
        };
        self.apply_replies(batch, replies).and(Ok(commands.len()))
    }

    /// The touches come first, sorted by shard: one script call touches sessions of one shard.
    fn commands(&self, batch: &Batch) -> Vec<Command> {
        let keys = self.redis.keys();
        let touch_commands = chunks_by_shard(keys, &batch.touches).filter_map(|touches| {
            let shard = shard_of(keys, touches.first()?);
            let touches: Vec<_> = touches.iter().map(|pending| &pending.touch).collect();
            Some(sessions::touch_command(shard, &touches, &self.activity.config))
        });
        let count_commands = batch.view_counts.iter().map(|((item, source), views)| match source {
            ViewSource::Served => ranking::count_command(keys, item, *views),
            ViewSource::Reported => ranking::count_if_ranked_command(keys, item, *views),
        });
        let keyed_commands = batch.keyed_views.iter().map(|(item, key)| ranking::count_once_command(keys, item, key));
        touch_commands.chain(count_commands).chain(keyed_commands).collect()
    }

    /// Takes the replies to the commands of [`Self::commands`]. Returns the last error.
    fn apply_replies(
        &self,
        Batch { touches, view_counts, keyed_views }: Batch,
        replies: Vec<Result<Reply, upstash_rest::Error>>,
    ) -> Result<(), Error> {
        let mut replies = replies.into_iter();
        let (mut result, mut refused) = (Ok(()), Batch::default());
        let mut is_limit = |error| {
            let is_limit = error == upstash_rest::Error::Quota;
            result = Err(Error::Redis(error));
            is_limit
        };
        for (touches, reply) in chunks_by_shard(self.redis.keys(), &touches).zip(replies.by_ref()) {
            match reply.and_then(Vec::<TouchOutcome>::from_reply) {
                Ok(outcomes) => touches
                    .iter()
                    .zip(outcomes)
                    .for_each(|(pending, outcome)| self.activity.apply_touch_outcome(pending, outcome)),
                Err(error) if is_limit(error.clone()) => refused.touches.extend_from_slice(touches),
                Err(_) => {}
            }
        }
        for (count, reply) in view_counts.into_iter().zip(replies.by_ref()) {
            if reply.is_err_and(&mut is_limit) {
                refused.view_counts.push(count);
            }
        }
        for (view, reply) in keyed_views.into_iter().zip(replies) {
            if reply.is_err_and(&mut is_limit) {
                refused.keyed_views.push(view);
            }
        }
        self.activity.pending.borrow_mut().put_back(refused);
        result
    }
}

fn shard_of(keys: Keys, pending: &PendingTouch) -> Shard {
    keys.shard_of(&pending.touch.token)
}

/// Groups of touches of one shard, if the touches are sorted.
fn chunks_by_shard(keys: Keys, touches: &[PendingTouch]) -> impl Iterator<Item = &[PendingTouch]> {
    touches.chunk_by(move |one, next| shard_of(keys, one) == shard_of(keys, next))
}
