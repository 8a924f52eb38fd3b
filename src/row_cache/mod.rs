//! Rows of the shop's database, cached in Redis as JSON and refreshed on a schedule. A flash-sale page reads stock and
//! sale times here. A row has a copy only while it is scheduled.
//!
//! `schedule:` has the time of each row's next refresh, `delay:` its period, and `inv:{row}` its copy. A refresh leases
//! the rows that are due (it moves their time in `schedule:` to the end of the lease). It reads them from the
//! [`RowSource`] in one query, and commits each row only if it still holds the lease. So runs may overlap, run twice or
//! be missed, and a failing row stops no other.
//!
//! A cron run keeps the rows that are due again before it ends: the commit moves their time to the end of a lease that
//! begins when they are due. So the run refreshes them without another script.
//!
//! - [`RowSource`]: the origin of the rows, a D1 table or an HTTP address.
//! - [`refresh_due`], [`refresh()`]: lease, load, commit; by the cron, or for named rows.
//! - [`read()`], [`read_many`]: the copies, with their age.
//! - [`RowMemory`]: copies that this isolate has read recently.
//! - [`schedule_report`]: the rows that are most overdue, for the operator.

mod commit;
mod lease;
mod memory;
mod read;
mod refresh;
mod report;
mod source;

use std::time::Duration;

pub(crate) use commit::{EarliestDue, earliest_due_command};
use lease::LEASE;
pub use memory::RowMemory;
pub use read::{CachedRow, RowState, read, read_many};
pub use refresh::{RefreshReport, refresh, refresh_due};
pub use report::{LateRow, ScheduleReport, schedule_report};
pub use source::RowSource;

use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::Command;

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

/// Loads a scheduled row now, because the caller has changed it in the source. A row that is not scheduled stays so.
///
/// Two requests and the query: the row becomes due, which ends a refresh under way that may have read the old row; then
/// [`refresh()`]. If the refresh loses its lease, both run once more. A cron run that gives the row back at its end
/// changes when the row is due, and so ends the lease.
///
/// # Errors
/// As [`refresh()`].
pub async fn refresh_now(
    redis: &Redis,
    source: &RowSource<'_>,
    row: &RowId,
    now: Timestamp,
) -> Result<RefreshReport, Error> {
    let mut is_repeated = false;
    loop {
        let due = Command::write("ZADD").arg(redis.keys().schedule()).arg("XX").num(now).arg(row.as_str()).repeatable();
        redis.run::<()>(due).await?;
        let report = refresh(redis, source, std::slice::from_ref(row), now).await?;
        if report.lost == 0 || is_repeated {
            return Ok(report);
        }
        is_repeated = true;
    }
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

    /// Returns whether the refresh is late by more than a period. The caller should then [`refresh()`] the row after its
    /// response.
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        now > self.next + self.period()
    }

    /// The next refresh, for people. During a refresh it is now, or the end of the lease if the period is longer than a
    /// lease: no run keeps such rows. A next time more than a period away is the end of a lease, or of the pause after a failed refresh.
    #[must_use]
    pub fn next_refresh(&self, now: Timestamp) -> Timestamp {
        if self.next > now + self.period() { now.max(self.next - LEASE) } else { self.next }
    }

    fn period(&self) -> Duration {
        Duration::from_secs_f64(self.every.clamp(0.0, MAX_PERIOD))
    }

    /// The lifetime of a copy: three periods, and at least a minute. So copies outlive a missed cron, and a dead cron
    /// does not leave old stock in place forever. `commit.lua` sets it, and the age of a copy is computed from it.
    fn lifetime(&self) -> Duration {
        (self.period() * 3).max(Duration::from_mins(1))
    }
}
