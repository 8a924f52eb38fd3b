//! Writes pending activity to Redis, in a background task of one request at a time.

use std::{rc::Rc, time::Duration};

use super::{
    Activity, ViewSource,
    pending::{Batch, PendingTouch},
};
use crate::{
    ports::{answer::BackgroundTask, error::Error, rate_limit::RateLimit, sort, time::Clock, time::Timestamp},
    ranking,
    schema::redis::Redis,
    sessions::{self, TouchOutcome},
};
use upstash_rest::FromReply;

/// The deadline of one pipeline; no visitor waits for it.
const BATCH_DEADLINE: Duration = Duration::from_secs(5);
/// Time that a pipeline waits for further activity.
const BATCH_WINDOW: Duration = Duration::from_millis(100);
/// Longest time that one request writes, for others too. A Worker has 30 s after its response (`waitUntil`).
const MAX_WRITE_TIME: Duration = Duration::from_secs(15);
/// A lease outlives the rate limit's answers and one pipeline.
const WRITER_LEASE: Duration = BATCH_DEADLINE.saturating_mul(2);

impl Activity {
    /// A task that writes all pending activity. None if there is none, or another request's task writes already.
    #[must_use]
    pub fn flush(
        self: &Rc<Self>,
        redis: &Rc<Redis>,
        clock: &Rc<dyn Clock>,
        view_limit: &RateLimit,
        now: Timestamp,
    ) -> Option<BackgroundTask> {
        self.acquire_writer_lease(now, WRITER_LEASE).then(|| -> BackgroundTask {
            let activity = self.clone();
            let (redis, clock, view_limit) = (redis.clone(), clock.clone(), view_limit.clone());
            Box::pin(async move {
                let redis = redis.with_deadline(BATCH_DEADLINE);
                Writer { activity: &activity, redis, clock, view_limit }.write_all().await;
            })
        })
    }
}

/// The holder of the writer's lease.
struct Writer<'a> {
    activity: &'a Activity,
    redis: Redis,
    clock: Rc<dyn Clock>,
    view_limit: RateLimit,
}

impl Writer<'_> {
    /// Sends one pipeline after another until nothing is pending. After [`MAX_WRITE_TIME`] it leaves the rest to the
    /// next request.
    async fn write_all(&self) {
        let end = self.clock.now() + MAX_WRITE_TIME;
        while !self.activity.pending.borrow().is_empty() {
            let has_full_batch = self.activity.pending.borrow().has_full_batch();
            if !has_full_batch {
                self.clock.sleep(BATCH_WINDOW).await;
            }
            self.activity.check_view_limit(&self.view_limit).await;
            if let Err(error) = self.send_batch().await {
                log::warn!("a batch of views is lost: {error}");
            }
            let now = self.clock.now();
            if now >= end {
                break;
            }
            self.activity.writer_lease.set(Some(now + WRITER_LEASE));
        }
        self.activity.writer_lease.set(None);
    }

    /// Sends one pipeline: its commands do not depend on each other. The replies to the touches say which views count;
    /// the next pipeline writes those.
    async fn send_batch(&self) -> Result<(), Error> {
        let keys = self.redis.keys();
        let Batch { mut touches, view_counts, keyed_views } = self.activity.pending.borrow_mut().take_batch();
        // One script call touches sessions of one shard.
        let shard_of = |pending: &PendingTouch| keys.shard_of(&pending.touch.token);
        sort::sort_by(&mut touches, |one, other| shard_of(one).cmp(&shard_of(other)));
        let shards: Vec<_> = touches.chunk_by(|one, next| shard_of(one) == shard_of(next)).collect();
        let touch_commands = shards.iter().filter_map(|touches| {
            let shard = shard_of(touches.first()?);
            let touches: Vec<_> = touches.iter().map(|pending| &pending.touch).collect();
            Some(sessions::touch_command(shard, &touches, &self.activity.config))
        });
        let count_commands = view_counts.iter().map(|((item, source), views)| match source {
            ViewSource::Served => ranking::count_command(keys, item, *views),
            ViewSource::Reported => ranking::count_if_ranked_command(keys, item, *views),
        });
        let keyed_commands = keyed_views.iter().map(|(item, key)| ranking::count_once_command(keys, item, key));
        let commands: Vec<_> = touch_commands.chain(count_commands).chain(keyed_commands).collect();

        let mut replies = self.redis.pipeline(&commands).await?.into_iter();
        let mut result = Ok(());
        for (touches, reply) in shards.into_iter().zip(replies.by_ref()) {
            match reply.and_then(Vec::<TouchOutcome>::from_reply) {
                Ok(outcomes) => touches
                    .iter()
                    .zip(outcomes)
                    .for_each(|(pending, outcome)| self.activity.apply_touch_outcome(pending, outcome)),
                Err(error) => result = Err(error),
            }
        }
        Ok(replies.try_for_each(|reply| reply.map(drop)).and(result)?)
    }
}
