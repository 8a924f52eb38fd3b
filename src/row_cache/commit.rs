//! Commits leased rows: writes the copies and the next refresh times, and ends the leases.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;

use super::{
    RefreshReport,
    lease::{Holder, LEASE, LeasedRow, RowLease},
};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{keys::Keys, redis::Redis, scripts::COMMIT},
};
use upstash_rest::{Command, FromReply, Reply};

/// Rows that one call of the script commits. While it runs, Redis serves no other client: half a millisecond.
const ROWS_PER_COMMIT: usize = 100;
/// Bytes of the rows that one call commits; a larger row has a call of its own.
const BYTES_PER_COMMIT: usize = 1 << 20;
/// Bytes of rows in one request: Upstash accepts 10 MB, and the request quotes the rows.
const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Marks a row that the source does not have. No copy equals it, because a copy is a JSON object.
const GONE: &[u8] = b"gone";

/// The result of a refresh for one leased row.
struct RowCommit<'a> {
    leased: &'a LeasedRow,
    /// The new copy. None if the source failed: the old copy stays. [`GONE`] if the source has no such row.
    copy: Option<&'a [u8]>,
}

impl<'a> RowCommit<'a> {
    fn new(leased: &'a LeasedRow, loaded: Result<&'a HashMap<String, Bytes>, &'a Error>) -> Self {
        let copy = loaded.ok().map(|loaded| loaded.get(leased.row.as_str()).map_or(GONE, |json| json));
        Self { leased, copy }
    }

    fn bytes(&self) -> usize {
        self.copy.map_or(0, <[u8]>::len)
    }
}

/// The rows of one call of the script.
pub(super) struct CommitBatch<'a> {
    rows: Vec<RowCommit<'a>>,
    bytes: usize,
    /// The source failed for these rows.
    source_failed: bool,
}

impl<'a> CommitBatch<'a> {
    /// Adds the rows of one query to `batches`.
    pub fn add(batches: &mut Vec<Self>, rows: &'a [LeasedRow], loaded: Result<&'a HashMap<String, Bytes>, &'a Error>) {
        let source_failed = loaded.is_err();
        let first = batches.len();
        for row in rows.iter().map(|row| RowCommit::new(row, loaded)) {
            let bytes = row.bytes();
            let fits =
                |batch: &&mut Self| batch.rows.len() < ROWS_PER_COMMIT && batch.bytes + bytes <= BYTES_PER_COMMIT;
            match batches.get_mut(first..).and_then(<[Self]>::last_mut).filter(fits) {
                Some(batch) => {
                    batch.bytes += bytes;
                    batch.rows.push(row);
                }
                None => batches.push(Self { rows: vec![row], bytes, source_failed }),
            }
        }
    }
}

/// The times of a commit.
#[derive(Clone, Copy)]
pub(super) struct CommitTerms {
    /// The rows are due again one period later.
    pub began: Timestamp,
    /// The refresh keeps the rows that are due again by then. None if it keeps no row.
    pub keep_by: Option<Timestamp>,
    pub holder: Holder,
}

/// Other rows, after a commit.
pub(super) struct Committed {
    /// The rows that the refresh keeps. Their leases begin when they are due.
    pub kept: Vec<LeasedRow>,
    /// The time of the first refresh of any other row. None if no other row is scheduled.
    pub earliest_due: Option<Timestamp>,
}

/// Commits `batches` and counts the rows in `report`.
///
/// Each batch is a script, because it writes a row only if the row's lease is still its own. The batches share
/// pipelines, because they are independent. The script is not repeated after a lost reply: the rows are due again when
/// the lease ends. `elapsed`: the time since the refresh began. The source was read meanwhile, so a copy may be that old.
pub(super) async fn commit(
    redis: &Redis,
    batches: &[CommitBatch<'_>],
    terms: CommitTerms,
    elapsed: Duration,
    report: &mut RefreshReport,
) -> Result<Committed, Error> {
    // If all scripts fail, the rows are due again when their leases end.
    let mut committed = Committed { kept: Vec::new(), earliest_due: Some(terms.began + LEASE) };
    let mut remaining = batches;
    while !remaining.is_empty() {
        let mut bytes = 0;
        let fits = |batch: &&CommitBatch<'_>| {
            let is_first = bytes == 0;
            bytes += batch.bytes;
            is_first || bytes <= MAX_REQUEST_BYTES
        };
        let (sent, rest) = remaining.split_at(remaining.iter().take_while(fits).count());
        remaining = rest;
        let command = |batch: &CommitBatch<'_>| commit_command(redis.keys(), &batch.rows, terms, elapsed);
        let commands: Vec<_> = sent.iter().map(command).collect();
        for (reply, batch) in redis.pipeline(&commands).await?.into_iter().zip(sent) {
            committed.add(reply, batch, terms.holder, report);
        }
    }
    Ok(committed)
}

impl Committed {
    /// Adds the reply of a batch. Each batch sees what the batches before it have written, so the last reply knows the
    /// earliest row. If a script failed, the leases stay: the rows are due again after 30 s.
    fn add(
        &mut self,
        reply: Result<Reply, upstash_rest::Error>,
        batch: &CommitBatch<'_>,
        holder: Holder,
        report: &mut RefreshReport,
    ) {
        match reply.and_then(Vec::<Option<f64>>::from_reply).as_deref() {
            Ok([earliest, rows @ ..]) => {
                self.earliest_due = earliest.map(Timestamp::from_score);
                for (row, again) in batch.rows.iter().zip(rows.chunks(2)) {
                    let counter = match again {
                        [None, Some(-2.0)] => &mut report.lost,
                        [None, Some(_)] => &mut report.removed,
                        _ if batch.source_failed => &mut report.failed,
                        _ => &mut report.refreshed,
                    };
                    *counter += 1;
                    if let &[Some(due), period] = again {
                        let lease = RowLease { begins: Timestamp::from_score(due), holder };
                        self.kept.push(LeasedRow { row: row.leased.row.clone(), lease, period });
                    }
                }
            }
            Ok([]) => {}
            Err(error) => {
                report.failed += batch.rows.len() as u64;
                report.cause.get_or_insert_with(|| error.clone().into());
            }
        }
    }
}

fn commit_command(keys: Keys, rows: &[RowCommit<'_>], terms: CommitTerms, elapsed: Duration) -> Command {
    let schedule_keys = [keys.schedule(), keys.delay()].into_iter();
    let copies = rows.iter().map(|row| keys.row(&row.leased.row));
    let command = Command::script(&COMMIT, schedule_keys.chain(copies))
        .num(terms.began)
        .num(terms.keep_by.unwrap_or(Timestamp::from_millis(0)))
        .arg(terms.holder.to_string())
        .num(elapsed.as_millis());
    rows.iter().fold(command, |command, row| {
        command
            .arg(row.leased.row.as_str())
            .num(row.leased.lease)
            .arg(row.leased.period.map(|period| period.to_string()).unwrap_or_default())
            .arg(row.copy.unwrap_or_default())
    })
}
