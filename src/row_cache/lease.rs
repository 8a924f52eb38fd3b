//! Leases rows to one refresh: until a lease ends, no other refresh gets the row.

use std::{fmt, time::Duration};

use bytes::Bytes;

use super::source::SOURCE_TIMEOUT;
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{ids::RowId, redis::Redis, scripts::CLAIM},
};
use upstash_rest::Command;

/// Three times the timeout of the source, so a lease ends only after the death of its holder. `commit.lua` has it, too.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// Three digits below a millisecond at the end of each lease, drawn at random. They identify the refresh that holds it:
/// two crons may begin in the same millisecond, and a row may be scheduled anew between their leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder(u16);

impl Holder {
    pub fn draw() -> Result<Self, Error> {
        Ok(Self(u16::from_ne_bytes(random::bytes()?) % 1000))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}", self.0)
    }
}

/// A lease, written as its end: a score of this century is exact to a quarter of a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowLease {
    pub begins: Timestamp,
    pub holder: Holder,
}

impl fmt::Display for RowLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.begins + LEASE, self.holder)
    }
}

/// A row that is leased to this refresh.
#[derive(Debug, Clone)]
pub(super) struct LeasedRow {
    pub row: RowId,
    pub lease: RowLease,
    /// The period in seconds, if this refresh has read it since the row was scheduled.
    pub period: Option<f64>,
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

/// Begins a lease on rows.
///
/// One script, because the times in `schedule:` decide which rows it leases, and the lease changes them. It is not
/// repeated after a lost reply: the rows are due again when the lease ends.
pub(super) async fn lease(
    redis: &Redis,
    selection: RowSelection<'_>,
    lease: RowLease,
) -> Result<Vec<LeasedRow>, Error> {
    let now = lease.begins;
    let (due_by, limit, rows, free_by) = match selection {
        RowSelection::Due { by, limit } => (by, limit, [].as_slice(), String::new()),
        // The lease of an active holder ends later than this, because its query ends within the timeout.
        RowSelection::Named { rows, reason: LeaseReason::CopyMissing } => {
            (now, rows.len(), rows, (now + LEASE - SOURCE_TIMEOUT).to_string())
        }
        RowSelection::Named { rows, reason: LeaseReason::Refresh } => (now, rows.len(), rows, String::new()),
    };
    let keys = redis.keys();
    let command = Command::script(&CLAIM, [keys.schedule(), keys.delay()])
        // The book's code writes scores finer than a millisecond: a row that is due within this millisecond is due.
        .num(due_by + Duration::from_millis(1))
        .num(lease)
        .num(limit)
        .arg(free_by)
        .args(rows.iter().map(RowId::as_str));
    let granted: Vec<Bytes> = redis.run(command).await?;
    // Other code may have scheduled names that are not row ids. No visitor can read them; the lease keeps them out of
    // the way.
    let row = |name: Bytes| RowId::parse(std::str::from_utf8(&name).ok()?).ok();
    Ok(granted.into_iter().filter_map(|name| Some(LeasedRow { row: row(name)?, lease, period: None })).collect())
}

/// Gives kept rows back before their leases begin: they are due as if nobody had kept them. A row that has another time
/// by now is due no later.
pub(super) async fn release(redis: &Redis, rows: &[LeasedRow]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let command = Command::write("ZADD").arg(redis.keys().schedule()).arg("XX").arg("LT").repeatable();
    let add = |command: Command, row: &LeasedRow| command.num(row.lease.begins).arg(row.row.as_str());
    Ok(redis.run(rows.iter().fold(command, add)).await?)
}
