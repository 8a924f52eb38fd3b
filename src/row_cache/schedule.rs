//! The schedule of rows.

use std::time::Duration;

use bytes::Bytes;
use upstash_rest::{Command, FromReply, Pairs, Reply};

use super::lease::LEASE;
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, keys::Keys, redis::Redis},
};

/// The shortest period in seconds: ten refreshes a second.
const MIN_PERIOD: f64 = 0.1;
/// The longest period in seconds: a year of 365 days. `commit.lua` has it, too.
const MAX_PERIOD: f64 = 31_536_000.0;

/// The refresh schedule of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Period in seconds.
    pub every: f64,
    /// The next refresh. The end of a lease during a refresh, or while a cron run keeps the row.
    pub next: Timestamp,
}

/// Schedules `row` for a refresh now, and then every `every` seconds. As in the book, `every` <= 0 unschedules the row
/// and deletes its copy.
///
/// One transaction, because the next refresh would unschedule a row that has a schedule and no delay.
///
/// # Errors
/// [`Error::Invalid`] if `every` is above 0 and below 0.1 s, above a year, or not a number; [`Error::Redis`].
pub async fn schedule(redis: &Redis, row: &RowId, every: f64, now: Timestamp) -> Result<(), Error> {
    if every <= 0.0 {
        return unschedule(redis, row).await;
    }
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&every) {
        return Err(Error::invalid("every", "must be 0.1 to 31536000 seconds, or 0 to unschedule the row"));
    }
    let keys = redis.keys();
    let add = |key: String, score: String| Command::write("ZADD").arg(key).arg(score).arg(row.as_str()).repeatable();
    redis.transaction::<()>(&[add(keys.delay(), every.to_string()), add(keys.schedule(), now.to_string())]).await?;
    Ok(())
}

/// Unschedules `row` and deletes its copy.
///
/// One transaction: a concurrent refresh then finds its lease gone and writes nothing.
///
/// # Errors
/// [`Error::Redis`].
pub async fn unschedule(redis: &Redis, row: &RowId) -> Result<(), Error> {
    let keys = redis.keys();
    let remove = |key: String| Command::write("ZREM").arg(key).arg(row.as_str()).repeatable();
    let delete = Command::write("DEL").arg(keys.row(row)).repeatable();
    redis.transaction::<()>(&[remove(keys.schedule()), remove(keys.delay()), delete]).await?;
    Ok(())
}

/// The schedule of `row`; None if the row is not scheduled. One pipeline, because the two reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn schedule_of(redis: &Redis, row: &RowId) -> Result<Option<Schedule>, Error> {
    let keys = redis.keys();
    let score = |key: String| Command::read("ZSCORE").arg(key).arg(row.as_str());
    let (every, next) = redis.all(&[score(keys.delay()), score(keys.schedule())]).await?;
    Ok(Schedule::new(every, next))
}

impl Schedule {
    /// A schedule from its two scores; None if one is missing, or if the period is not above 0.
    pub(crate) fn new(every: Option<f64>, next: Option<f64>) -> Option<Self> {
        let every = every.filter(|every| *every > 0.0)?;
        Some(Self { every, next: Timestamp::from_score(next?) })
    }

    /// Returns whether the refresh is late by more than a period. The caller should then
    /// [`refresh`](super::refresh()) the row after its response.
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        now > self.next + self.period()
    }

    /// The next refresh, for people. During a refresh it is now, or the end of the lease if the period is longer than a
    /// lease: no run keeps such rows. A next time more than a period away is the end of a lease, or of the pause after a failed refresh.
    #[must_use]
    pub fn next_refresh(&self, now: Timestamp) -> Timestamp {
        if self.next > now + self.period() { now.max(self.next - LEASE) } else { self.next }
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_secs_f64(self.every.clamp(0.0, MAX_PERIOD))
    }

    /// The lifetime of a copy: three periods, and at least a minute. So copies outlive a missed cron, and a dead cron
    /// does not leave old stock in place forever. `commit.lua` sets it, and the age of a copy is computed from it.
    pub(super) fn lifetime(&self) -> Duration {
        (self.period() * 3).max(Duration::from_mins(1))
    }
}

/// The command that reads the [`EarliestDue`] row.
pub fn earliest_due_command(keys: Keys) -> Command {
    Command::read("ZRANGE").arg(keys.schedule()).arg("0").arg("0").arg("WITHSCORES")
}

/// The time at which the first row is due; None if no row is scheduled.
#[derive(Debug, Clone, Copy)]
pub struct EarliestDue(pub Option<Timestamp>);

impl FromReply for EarliestDue {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        let Pairs::<Bytes, f64>(first) = Pairs::from_reply(reply)?;
        Ok(Self(first.first().map(|(_, due)| Timestamp::from_score(*due))))
    }
}
