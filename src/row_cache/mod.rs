//! Rows of the shop's database, kept in Redis as JSON and refreshed on a schedule: what a flash-sale page asks for stock and
//! sale times. A row has a copy only while it is scheduled.
//!
//! `schedule:` says when a row is due and `delay:` how often; `inv:{row}` is the copy. A refresh leases the rows that are due
//! (`schedule:` moves ahead by the lease), reads them from the [`RowSource`] in one query, and commits each of them only if the
//! lease is still its own. So runs may overlap, be doubled or be missed, and one row that fails stops no other.
//!
//! - [`source`]: where rows come from: a table of D1, or an HTTP address.
//! - [`refresh`]: lease, load, commit; by the cron, and for single rows.
//! - [`read`]: the copies, with their age.
//! - `memory`: those that this isolate has read a moment ago.
//! - `late`: which rows wait longest, for the operator.

mod late;
mod memory;
mod read;
mod refresh;
mod source;

use std::time::Duration;

pub use late::{LateRow, ScheduleReport, latest};
pub use memory::RowMemory;
pub use read::{CachedRow, read, read_many};
pub(crate) use refresh::{EarliestDue, earliest_due};
pub use refresh::{RefreshReport, refresh, refresh_due};
pub use source::RowSource;

use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::Command;

/// The shortest period: ten refreshes a second.
const SHORTEST: f64 = 0.1;
/// The longest one: a year of 365 days, in seconds.
const LONGEST: f64 = 31_536_000.0;

/// When a row is refreshed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Period in seconds.
    pub every: f64,
    /// The next refresh; during one, the end of its lease.
    pub next: Timestamp,
}

/// Schedules `row`: due now, then `every` so many seconds. As in the book, `every` <= 0 un-schedules the row and deletes its
/// copy.
///
/// One transaction, since a row with a schedule and no delay would be un-scheduled by the next refresh.
///
/// # Errors
/// [`Error::Invalid`] if `every` is above 0 and under 0.1 s, over a year, or no number; [`Error::Redis`].
pub async fn schedule(redis: &Redis, row: &RowId, every: f64, now: Timestamp) -> Result<(), Error> {
    if every <= 0.0 {
        return unschedule(redis, row).await;
    }
    if !(SHORTEST..=LONGEST).contains(&every) {
        return Err(Error::invalid("every", "must be 0.1 to 31536000 seconds, or 0 for no copy at all"));
    }
    let keys = redis.keys();
    let add = |key: String, score: String| Command::write("ZADD").arg(key).arg(score).arg(row.as_str()).repeatable();
    redis.transaction::<()>(&[add(keys.delay(), every.to_string()), add(keys.schedule(), now.to_string())]).await?;
    Ok(())
}

/// Un-schedules `row` and deletes its copy, in one transaction: a refresh that is under way then finds its lease gone and
/// writes nothing.
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

/// The schedule of `row`; None if it has none.
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
    /// A schedule from its two scores; None without either, or with a period that is not above 0.
    pub(crate) fn new(every: Option<f64>, next: Option<f64>) -> Option<Self> {
        let every = every.filter(|every| *every > 0.0)?;
        Some(Self { every, next: Timestamp::from_score(next?) })
    }

    /// Returns whether a turn was missed by more than a period: then the caller should [`refresh`] the row behind its answer.
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        now > self.next + self.period()
    }

    fn period(&self) -> Duration {
        Duration::from_secs_f64(self.every.clamp(0.0, LONGEST))
    }

    /// How long a copy lives without being refreshed: three periods, and at least a minute, so that the copies outlive a cron
    /// that is missed, and a dead cron does not show old stock for ever.
    fn lifetime(&self) -> Duration {
        (self.period() * 3).max(Duration::from_mins(1))
    }
}
