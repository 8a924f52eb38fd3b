//! Commits leased rows: writes the copies and the next refresh times, and ends the leases.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;

use super::{RefreshReport, Schedule, lease::LEASE};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, keys::Keys, redis::Redis, scripts::COMMIT},
};
use upstash_rest::{Command, FromReply, Pairs, Reply};

/// Rows that one call of the script commits. While it runs, Redis serves no other client: half a millisecond.
pub(super) const ROWS_PER_COMMIT: usize = 100;
/// Bytes of rows in one request, to which the last call may add its own: Upstash accepts 10 MB.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// After a failure a row waits for its period, within these bounds: a source that is down is neither overloaded nor
/// given up.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = LEASE;

/// The result of a refresh for one leased row.
pub(super) struct RowCommit<'a> {
    row: &'a RowId,
    schedule: Schedule,
    /// The next refresh. None unschedules the row: it is gone from the source, or it has no period.
    next: Option<Timestamp>,
    /// The new copy. None if the source failed: the old copy stays.
    copy: Option<&'a Bytes>,
}

impl<'a> RowCommit<'a> {
    pub fn new(
        row: &'a RowId,
        every: f64,
        leased_at: Timestamp,
        loaded: Result<&'a HashMap<String, Bytes>, &'a Error>,
    ) -> Self {
        let schedule = Schedule { every, next: leased_at };
        let copy = loaded.map(|loaded| loaded.get(row.as_str()));
        let wait = match copy {
            Ok(None) => None,
            Ok(Some(_)) => Some(schedule.period()),
            Err(_) => Some(schedule.period().clamp(MIN_BACKOFF, MAX_BACKOFF)),
        };
        let next = wait.filter(|_| every > 0.0).map(|wait| leased_at + wait);
        Self { row, schedule, next, copy: copy.ok().flatten() }
    }
}

/// The rows of one call of the script.
pub(super) struct CommitBatch<'a> {
    /// At most [`ROWS_PER_COMMIT`] rows.
    pub rows: Vec<RowCommit<'a>>,
    /// The source failed for these rows.
    pub source_failed: bool,
}

/// Commits `batches` under `lease`, counts the rows in `report`, and returns the time of the next refresh of any row.
///
/// Each batch is a script, because it writes a row only if the row's lease is still its own. The batches and the read
/// of the earliest row share pipelines, because they are independent. The script is not repeated after a lost reply:
/// the rows are due again when the lease ends.
pub(super) async fn commit(
    redis: &Redis,
    batches: &[CommitBatch<'_>],
    lease: &str,
    report: &mut RefreshReport,
) -> Result<Option<Timestamp>, Error> {
    // Starts with the rows of these batches. A server that does not know the script gets it in a second request, after
    // the read of the earliest row, and that read does not see these rows' next refresh.
    let mut earliest = batches.iter().flat_map(|batch| &batch.rows).filter_map(|row| row.next).min();
    let mut remaining = batches;
    loop {
        let mut bytes = 0;
        let fits = |batch: &&CommitBatch<'_>| {
            let fits = bytes < MAX_REQUEST_BYTES;
            bytes += batch.rows.iter().map(|row| row.copy.map_or(0, Bytes::len)).sum::<usize>();
            fits
        };
        let (sent, rest) = remaining.split_at(remaining.iter().take_while(fits).count());
        remaining = rest;
        let scripts = sent.iter().map(|batch| commit_command(redis.keys(), &batch.rows, lease));
        let commands: Vec<_> = scripts.chain([earliest_due_command(redis.keys())]).collect();
        let mut replies = redis.pipeline(&commands).await?;
        let EarliestDue(next) = EarliestDue::from_reply(replies.pop().ok_or(upstash_rest::Error::UnexpectedType)??)?;
        earliest = earliest.into_iter().chain(next).min();
        for (reply, batch) in replies.into_iter().zip(sent) {
            count(reply, batch, report);
        }
        if remaining.is_empty() {
            return Ok(earliest);
        }
    }
}

/// Adds a batch to the report. If its script failed, the leases stay: the rows are due again after 30 s.
fn count(reply: Result<Reply, upstash_rest::Error>, batch: &CommitBatch<'_>, report: &mut RefreshReport) {
    match reply.and_then(<(u64, u64, u64)>::from_reply) {
        Ok((kept, removed, lost)) => {
            let counter = if batch.source_failed { &mut report.failed } else { &mut report.refreshed };
            *counter += kept;
            report.removed += removed;
            report.lost += lost;
        }
        Err(error) => {
            report.failed += batch.rows.len() as u64;
            report.cause.get_or_insert_with(|| error.into());
        }
    }
}

fn commit_command(keys: Keys, rows: &[RowCommit<'_>], lease: &str) -> Command {
    let schedule_keys = [keys.schedule(), keys.delay()].into_iter();
    let copies = rows.iter().map(|row| keys.row(row.row));
    let command = Command::script(&COMMIT, schedule_keys.chain(copies)).arg(lease);
    rows.iter().fold(command, |command, row| {
        command
            .arg(row.row.as_str())
            .arg(row.next.map(|next| next.to_string()).unwrap_or_default())
            .num(row.schedule.lifetime().as_millis())
            .arg(row.copy.map_or(&[][..], |json| json))
    })
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
