//! Refreshes rows: leases them, loads them from the source, commits them. Lease and commit are two scripts, because the
//! slow part lies between them: the query.

use std::{collections::HashMap, slice, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use upstash_rest::Command;

use super::{
    commit::{CommitBatch, CommitTerms, Committed, commit},
    lease::{Holder, LeaseReason, LeasedRow, RowLease, RowSelection, lease, release},
    schedule::{EarliestDue, earliest_due_command},
    source::RowSource,
};
use crate::{
    ports::{budget::Budget, error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};

/// Rows that a round leases: 10,000 rows with a period of 5 s then take 2 rounds a second.
const ROWS_PER_ROUND: usize = 1_000;
/// Requests of a round with one query: lease, query, commit.
const REQUESTS_PER_ROUND: u64 = 3;
/// The shortest interval between rounds, equal to the shortest period. Commands are billed, and one round leases all
/// rows that become due within the interval.
const MIN_ROUND_INTERVAL: Duration = Duration::from_millis(100);
/// At the end of a run, a row that is later than this makes the run unfinished.
const UNFINISHED_AFTER: Duration = Duration::from_secs(1);
/// Concurrent queries of a round: an invocation has six connections, two of which the session cleanup may hold.
const CONCURRENT_QUERIES: usize = 4;

/// The result of a refresh, in rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RefreshReport {
    /// Rows with a new copy.
    pub refreshed: u64,
    /// Rows that were unscheduled and lost their copy: without a period, or gone from the source.
    pub removed: u64,
    /// Rows whose source failed. They keep their copy, and are loaded again after one to two periods, 1 to 30 s later.
    pub failed: u64,
    /// Rows that another call scheduled anew or unscheduled meanwhile.
    pub lost: u64,
    /// Rows are left for the next run, for lack of time or requests.
    pub unfinished: bool,
    /// The error of the first failed row.
    #[serde(skip)]
    pub cause: Option<Error>,
}

/// Refreshes the rows that are due and sleeps until the next one, until no row is due by `due_by` or `budget` is used
/// up. Also returns when the next row is due; None if no row is scheduled.
///
/// So a row with a period of 5 s needs no daemon: a cron run works for nearly its whole minute. An idle run takes one
/// command. It is safe to run twice: a row that one run has leased is not due for the other.
///
/// With few requests (50 on the Free plan), rounds are spread over the whole time. Rows then take turns at being some
/// seconds late; otherwise all of them would be late for the rest of the minute.
///
/// A run reads the earliest row once. Each round is one script for the lease, the queries, and one pipeline for the
/// commit. The run keeps the rows that are due again before its end, so they need no script for their next lease.
///
/// # Errors
/// [`Error::Redis`]: the leased rows are due again within 30 s, the kept rows 30 s late. A failing source is not an error;
/// the report counts it.
pub async fn refresh_due(
    redis: &Redis,
    source: &RowSource<'_>,
    budget: &Budget,
    due_by: Timestamp,
) -> Result<(RefreshReport, Option<Timestamp>), Error> {
    let (mut report, holder) = (RefreshReport::default(), Holder::draw()?);
    let (mut earliest, mut is_known) = (None, false);
    // The rows that this run keeps. Only it refreshes them, until the leases end that begin when they are due.
    let mut kept = Vec::<LeasedRow>::new();
    let next = |kept: &[LeasedRow], earliest| kept.iter().map(|row| row.lease.begins).chain(earliest).min();
    let mut not_before = budget.now();
    loop {
        if !is_known {
            EarliestDue(earliest) = redis.run(earliest_due_command(redis.keys())).await?;
        }
        let Some(due) = next(&kept, earliest).filter(|due| *due <= due_by) else { break };
        let (now, limit) = (budget.now(), round_limit(source, budget));
        if limit == 0 {
            report.unfinished = !budget.is_over() || now.since(due) > UNFINISHED_AFTER;
            break;
        }
        let wait = due.max(not_before).since(now);
        if !wait.is_zero() {
            budget.sleep(wait).await;
        }
        let now = budget.now();
        let rounds = (budget.spare() / REQUESTS_PER_ROUND).min(source.spare_queries(budget));
        let interval = budget.pace(rounds).max(MIN_ROUND_INTERVAL);
        // Includes the rows that become due before the next round can begin.
        let by = due_by.min(now + interval);
        let mut leased = Vec::new();
        kept.retain(|row| {
            let is_due = row.lease.begins <= by && leased.len() < limit;
            if is_due {
                leased.push(row.clone());
            }
            !is_due
        });
        if leased.len() < limit && earliest.is_some_and(|due| due <= by) {
            let selection = RowSelection::Due { by, limit: limit - leased.len() };
            leased.extend(lease(redis, selection, RowLease { begins: now, holder }).await?);
        }
        not_before = if leased.len() < limit { now + interval } else { now };
        is_known = !leased.is_empty();
        if !is_known {
            continue;
        }
        let terms = CommitTerms { began: now, keep_by: Some(due_by), holder };
        let (_, committed) = load_and_commit(redis, source, &leased, terms, &mut report).await?;
        kept.extend(committed.kept);
        earliest = committed.earliest_due;
    }
    release(redis, &kept).await?;
    Ok((report, next(&kept, earliest)))
}

/// Rows that the next round may lease: at most as many as the remaining requests can load and commit.
fn round_limit(source: &RowSource<'_>, budget: &Budget) -> usize {
    let queries = source.spare_queries(budget).min(budget.spare().saturating_sub(REQUESTS_PER_ROUND - 1));
    usize::try_from(queries).unwrap_or(usize::MAX).saturating_mul(source.rows_per_query()).min(ROWS_PER_ROUND)
}

/// Refreshes those of `rows` that are scheduled and neither leased nor backing off: for rows that are overdue or were
/// scheduled just now. One round, as in [`refresh_due`], per thousand rows.
///
/// # Errors
/// As [`refresh_due`].
pub async fn refresh(
    redis: &Redis,
    source: &RowSource<'_>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<RefreshReport, Error> {
    Ok(load(redis, source, rows, LeaseReason::Refresh, now).await?.1)
}

/// Loads a scheduled row now, because the caller has changed it in the source. A row that is not scheduled stays so.
///
/// Two requests and the query: the row becomes due, which ends a refresh under way that may have read the old row; then
/// [`refresh`]. If the refresh loses its lease, both run once more. A cron run that gives the row back at its end
/// changes when the row is due, and so ends the lease.
///
/// # Errors
/// As [`refresh`].
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
        let report = refresh(redis, source, slice::from_ref(row), now).await?;
        if report.lost == 0 || is_repeated {
            return Ok(report);
        }
        is_repeated = true;
    }
}

/// As [`refresh`]; also returns the loaded rows.
pub(super) async fn load(
    redis: &Redis,
    source: &RowSource<'_>,
    rows: &[RowId],
    reason: LeaseReason,
    now: Timestamp,
) -> Result<(LoadedRows, RefreshReport), Error> {
    let (mut loaded, mut report) = (LoadedRows::new(), RefreshReport::default());
    for rows in rows.chunks(ROWS_PER_ROUND) {
        let terms = CommitTerms { began: now, keep_by: None, holder: Holder::draw()? };
        let own = RowLease { begins: now, holder: terms.holder };
        let leased = lease(redis, RowSelection::Named { rows, reason }, own).await?;
        if !leased.is_empty() {
            loaded.extend(load_and_commit(redis, source, &leased, terms, &mut report).await?.0);
        }
    }
    Ok((loaded, report))
}

/// Row → its JSON, or None if the source does not have the row. A row whose query failed is absent.
pub(super) type LoadedRows = HashMap<RowId, Option<Bytes>>;

/// Loads the leased rows and commits them in one pipeline. A round of up to 1,000 rows of a table takes 3 requests, and 2
/// for kept rows, because an invocation on the Free plan has only 50. With `ROWS_URL`, each further hundred rows take one
/// more.
async fn load_and_commit(
    redis: &Redis,
    source: &RowSource<'_>,
    leased: &[LeasedRow],
    terms: CommitTerms,
    report: &mut RefreshReport,
) -> Result<(LoadedRows, Committed), Error> {
    let query = async |rows: &'_ [LeasedRow]| source.load(&ids(rows)).await;
    let chunks = leased.chunks(source.rows_per_query());
    let answers: Vec<_> = stream::iter(chunks.clone()).map(query).buffered(CONCURRENT_QUERIES).collect().await;
    let mut batches = Vec::new();
    for (rows, answer) in chunks.clone().zip(&answers) {
        CommitBatch::add(&mut batches, rows, answer.as_ref());
    }
    let elapsed = source.since(terms.began);
    let committed = commit(redis, &batches, terms, elapsed, report).await?;

    let mut loaded = LoadedRows::new();
    for (rows, answer) in chunks.zip(&answers) {
        match answer {
            Ok(found) => {
                loaded.extend(ids(rows).into_iter().map(|row| (row.clone(), found.get(row.as_str()).cloned())));
            }
            Err(cause) => {
                report.cause.get_or_insert_with(|| cause.clone());
            }
        }
    }
    Ok((loaded, committed))
}

fn ids(rows: &[LeasedRow]) -> Vec<&RowId> {
    rows.iter().map(|leased| &leased.row).collect()
}
