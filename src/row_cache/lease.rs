//! Leases rows to one refresh: until a lease ends, no other refresh gets the row.

use std::time::Duration;

use bytes::Bytes;

use super::source::SOURCE_TIMEOUT;
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{ids::RowId, redis::Redis, scripts::CLAIM},
};
use upstash_rest::{Command, Pairs};

/// Three times the timeout of the source, so a lease ends only after the death of its holder.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// Rows with their periods in seconds; 0 for a row without one.
pub(super) type RowPeriods = [(RowId, f64)];

/// Rows that are leased to this refresh.
pub(super) struct LeasedRows {
    pub leased_at: Timestamp,
    /// The end of the lease as a score. It identifies the holder.
    pub lease: String,
    pub rows: Vec<(RowId, f64)>,
}

/// The rows to lease.
pub(super) enum RowSelection<'a> {
    /// The first `limit` rows that are due by `by`.
    Due { by: Timestamp, limit: usize },
    /// Those of `rows` that are neither leased nor backing off.
    Named { rows: &'a [RowId], reason: LeaseReason },
}

/// The reason to lease named rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseReason {
    /// The rows are overdue, or were scheduled just now.
    Refresh,
    /// The copies of the rows are missing. They are leased before they are due.
    CopyMissing,
}

/// Leases rows to this refresh.
///
/// One script, because the times in `schedule:` decide which rows it leases, and the lease changes them. It is not
/// repeated after a lost reply: the rows are due again when the lease ends.
pub(super) async fn lease(redis: &Redis, selection: RowSelection<'_>, now: Timestamp) -> Result<LeasedRows, Error> {
    let (due_by, limit, rows, free_by) = match selection {
        RowSelection::Due { by, limit } => (by, limit, [].as_slice(), String::new()),
        // The lease of an active holder ends later than this, because its query ends within the timeout.
        RowSelection::Named { rows, reason: LeaseReason::CopyMissing } => {
            (now, rows.len(), rows, (now + LEASE - SOURCE_TIMEOUT).to_string())
        }
        RowSelection::Named { rows, reason: LeaseReason::Refresh } => (now, rows.len(), rows, String::new()),
    };
    let keys = redis.keys();
    let lease = lease_end(now)?;
    let command = Command::script(&CLAIM, [keys.schedule(), keys.delay()])
        // The book's code writes scores finer than a millisecond: a row that is due within this millisecond is due.
        .num(due_by + Duration::from_millis(1))
        .arg(lease.as_str())
        .num(limit)
        .arg(free_by)
        .args(rows.iter().map(RowId::as_str));
    let Pairs::<Bytes, f64>(granted) = redis.run(command).await?;
    // Other code may have scheduled names that are not row ids. No visitor can read them; the lease keeps them out of
    // the way.
    let row = |name: Bytes| RowId::parse(std::str::from_utf8(&name).ok()?).ok();
    let rows = granted.into_iter().filter_map(|(name, every)| Some((row(name)?, every))).collect();
    Ok(LeasedRows { leased_at: now, lease, rows })
}

/// The end of a lease that begins at `now`, with one of a thousand values within its millisecond. The random digits
/// identify the holder: two crons may begin in the same millisecond, and a row may be scheduled anew between their
/// leases.
/// A score of this century is exact to a quarter of a microsecond.
fn lease_end(now: Timestamp) -> Result<String, Error> {
    let holder = u16::from_ne_bytes(random::bytes()?) % 1000;
    Ok(format!("{}{holder:03}", now + LEASE))
}
