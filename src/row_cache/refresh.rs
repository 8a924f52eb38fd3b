//! Refreshes rows: lease, load, commit. A lease is 30 s; whoever loses it writes nothing.
//!
//! A script each for the lease and the commit, since what they write depends on the schedule they read; between the two lies
//! the slow part, the source.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Serialize;

use super::{
    Schedule,
    source::{DEADLINE, RowSource},
};
use crate::schema::scripts::{CLAIM, COMMIT};
use crate::{
    ports::{budget::Budget, error::Error, random, time::Timestamp},
    schema::{ids::RowId, keys::Keys, redis::Redis},
};
use upstash_rest::{Command, FromReply, Pairs, Reply};

/// How many rows a round leases: one of 10,000 rows every 5 s then is 2 rounds a second.
const BATCH: usize = 1_000;
/// The requests of a round that needs one query: the lease, the query, the commit.
const ROUND: u64 = 3;
/// The least time from one round to the next, which is the shortest period: commands are billed, and whoever is due in between comes along.
const AT_LEAST: Duration = Duration::from_millis(100);
/// A row this late at the end of a run waits for the next one.
const LATE: Duration = Duration::from_secs(1);
/// How many rows one call of the script commits. While it runs Redis serves nobody else: half a millisecond.
const COMMIT_AT_ONCE: usize = 100;
/// How many bytes of rows go in one request, give or take a call: Upstash takes 10 MB.
const COMMIT_BYTES: usize = 4 << 20;
/// How many queries of a round are under way at once: an invocation has six connections, two of which the cleaning may hold.
const QUERIES: usize = 4;

/// Three times what the source may take, so that a lease ends only under a run that has died.
const LEASE: Duration = Duration::from_secs(30);
/// After a failure a row waits for its period, within these bounds: a source that is down is neither hammered nor forgotten.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), LEASE);

/// What a refresh did, in rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RefreshReport {
    /// Rows with a new copy.
    pub refreshed: u64,
    /// Rows that were un-scheduled, and their copies deleted: without a delay, or gone from the database.
    pub removed: u64,
    /// Rows whose source failed: they keep their copy and are tried again after their period, 30 s at most.
    pub failed: u64,
    /// Rows that somebody scheduled anew or un-scheduled meanwhile.
    pub lost: u64,
    /// Rows were left to the next run: there was no time for them, or no request.
    pub unfinished: bool,
    /// Why the first of the failed ones failed.
    #[serde(skip)]
    pub cause: Option<Error>,
}

/// Refreshes what is due, sleeping until the next row is, until nothing more is due by `due_by`, or `budget` is over.
///
/// This is why a row with a period of 5 s needs no daemon: a cron run works on for nearly the minute that it is for. Idle it
/// costs one command. Safe to run twice: a row leased by one run is not due for the other.
///
/// Where requests are few (50 on the Free plan) rounds keep such a distance that they last for the whole time: rows are then
/// some seconds late in turn, and not all of them for the rest of the minute.
///
/// # Errors
/// [`Error::Redis`]; the rows leased then are due again within 30 s. A source that fails is no error, but counted.
pub async fn refresh_due(
    redis: &Redis,
    source: &RowSource<'_>,
    budget: &Budget,
    due_by: Timestamp,
) -> Result<RefreshReport, Error> {
    let mut report = RefreshReport::default();
    let EarliestDue(mut earliest) = redis.run(earliest_due(redis.keys())).await?;
    let mut not_before = budget.now();
    while let Some(due) = earliest.filter(|due| *due <= due_by) {
        let (now, limit) = (budget.now(), round(source, budget));
        if limit == 0 {
            report.unfinished = !budget.is_over() || now.since(due) > LATE;
            break;
        }
        let wait = due.max(not_before).since(now);
        if !wait.is_zero() {
            budget.sleep(wait).await;
        }
        let now = budget.now();
        let pace = budget.pace((budget.spare() / ROUND).min(source.spare_queries(budget))).max(AT_LEAST);
        // What comes to be due before the next round can begin is taken along.
        let claims = claim(redis, Wanted::Due { by: due_by.min(now + pace), limit }, now).await?;
        not_before = if claims.rows.len() < limit { now + pace } else { now };
        earliest = work(redis, source, claims, &mut report).await?.earliest;
    }
    Ok(report)
}

/// How many rows the next round may lease: no more than there are requests for, to load and commit them.
fn round(source: &RowSource<'_>, budget: &Budget) -> usize {
    let queries = source.spare_queries(budget).min(budget.spare().saturating_sub(ROUND - 1));
    usize::try_from(queries).unwrap_or(usize::MAX).saturating_mul(source.batch()).min(BATCH)
}

/// Refreshes those of `rows` that are scheduled and neither leased nor backing off: for a row whose turn was missed, or that was
/// scheduled just now.
///
/// # Errors
/// As [`refresh_due`].
pub async fn refresh(
    redis: &Redis,
    source: &RowSource<'_>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<RefreshReport, Error> {
    let mut report = RefreshReport::default();
    load(redis, source, rows, false, now, &mut report).await?;
    Ok(report)
}

/// As [`refresh`]; also returns what was loaded. Rows whose copies are `absent` are loaded though their turn has not come.
pub(super) async fn load(
    redis: &Redis,
    source: &RowSource<'_>,
    rows: &[RowId],
    absent: bool,
    now: Timestamp,
    report: &mut RefreshReport,
) -> Result<Loaded, Error> {
    let mut loaded = HashMap::new();
    for batch in rows.chunks(BATCH) {
        let claims = claim(redis, Wanted::Named { rows: batch, absent }, now).await?;
        if !claims.rows.is_empty() {
            loaded.extend(work(redis, source, claims, report).await?.loaded);
        }
    }
    Ok(loaded)
}

/// Rows leased to us.
struct Claims {
    now: Timestamp,
    /// The end of the lease, as its score is written.
    lease: String,
    /// Each with its period in seconds, 0 if it has none.
    rows: Vec<(RowId, f64)>,
}

/// Which rows to lease.
enum Wanted<'a> {
    /// The first `limit` that are due `by` then.
    Due { by: Timestamp, limit: usize },
    /// Of these those that are neither leased nor backing off; `absent`: their copies are missing.
    Named { rows: &'a [RowId], absent: bool },
}

async fn claim(redis: &Redis, wanted: Wanted<'_>, now: Timestamp) -> Result<Claims, Error> {
    let (due_by, limit, rows, free_by) = match wanted {
        Wanted::Due { by, limit } => (by, limit, [].as_slice(), String::new()),
        // Who works on a row has at least as much of the lease left as the source may not take.
        Wanted::Named { rows, absent: true } => (now, rows.len(), rows, (now + LEASE - DEADLINE).to_string()),
        Wanted::Named { rows, absent: false } => (now, rows.len(), rows, String::new()),
    };
    let keys = redis.keys();
    let lease = lease_from(now)?;
    let command = Command::script(&CLAIM, [keys.schedule(), keys.delay()])
        // Scores of the book's code are finer than a millisecond: what is due within this one is due.
        .num(due_by + Duration::from_millis(1))
        .arg(lease.as_str())
        .num(limit)
        .arg(free_by)
        .args(rows.iter().map(RowId::as_str));
    let Pairs::<Bytes, f64>(granted) = redis.run(command).await?;
    // A name that is no RowId was written by somebody else and has no reader here. Its lease keeps it out of the way.
    let row = |name: Bytes| RowId::parse(std::str::from_utf8(&name).ok()?).ok();
    let rows = granted.into_iter().filter_map(|(name, every)| Some((row(name)?, every))).collect();
    Ok(Claims { now, lease, rows })
}

/// The end of a lease that begins now, and whose it is: one of a thousand ends within its millisecond, since two crons begin at once and
/// a row may be scheduled anew between their claims. A score of this century is exact to a quarter of a microsecond.
fn lease_from(now: Timestamp) -> Result<String, Error> {
    let own = u16::from_ne_bytes(random::bytes()?) % 1000;
    Ok(format!("{}{own:03}", now + LEASE))
}

/// What the source said of leased rows: None for one that does not exist. Empty if it failed.
pub(super) type Loaded = HashMap<RowId, Option<Bytes>>;

/// What came of some claims.
struct Work {
    loaded: Loaded,
    /// When the next row is due, of all that are scheduled.
    earliest: Option<Timestamp>,
}

/// Loads the leased rows and commits them in one request, which asks for the next row that is due too: 3 requests in all for
/// up to 1,000 rows of a table, since an invocation on the Free plan has only 50; with an address one more for each further
/// hundred.
async fn work(
    redis: &Redis,
    source: &RowSource<'_>,
    claims: Claims,
    report: &mut RefreshReport,
) -> Result<Work, Error> {
    let query = async |rows| (rows, source.load(&with_period(rows)).await);
    let queries = stream::iter(claims.rows.chunks(source.batch())).map(query).buffered(QUERIES);
    let answers: Vec<(&[(RowId, f64)], _)> = queries.collect().await;
    let turns = answers.iter().flat_map(|(rows, loaded)| {
        rows.chunks(COMMIT_AT_ONCE).map(move |rows| {
            let turns = rows.iter().map(|(row, every)| Turn::new(row, *every, claims.now, loaded.as_ref()));
            (turns.collect::<Vec<_>>(), loaded.as_ref().err())
        })
    });
    let turns: Vec<_> = turns.collect();
    let earliest = commit(redis, &turns, &claims.lease, report).await?;

    let mut loaded = HashMap::new();
    for (rows, answer) in &answers {
        match answer {
            Ok(found) => {
                loaded.extend(with_period(rows).into_iter().map(|row| (row.clone(), found.get(row.as_str()).cloned())));
            }
            Err(cause) => {
                report.cause.get_or_insert_with(|| cause.clone());
            }
        }
    }
    Ok(Work { loaded, earliest })
}

/// Those that have a period; the others are only un-scheduled.
fn with_period(rows: &[(RowId, f64)]) -> Vec<&RowId> {
    rows.iter().filter(|(_, every)| *every > 0.0).map(|(row, _)| row).collect()
}

/// Commits turns, each list of them in one call of the script, and returns when the next row is due.
async fn commit(
    redis: &Redis,
    turns: &[(Vec<Turn<'_>>, Option<&Error>)],
    lease: &str,
    report: &mut RefreshReport,
) -> Result<Option<Timestamp>, Error> {
    // Our own next turns count too: a server that had to be sent the script in full has answered the question before the commits.
    let mut earliest = turns.iter().flat_map(|(turns, _)| turns).filter_map(|turn| turn.next).min();
    let mut rest = turns;
    loop {
        let mut bytes = 0;
        let fits = |(turns, _): &&(Vec<Turn>, _)| {
            let fits = bytes < COMMIT_BYTES;
            bytes += turns.iter().map(|turn| turn.copy.map_or(0, Bytes::len)).sum::<usize>();
            fits
        };
        let (now, later) = rest.split_at(rest.iter().take_while(fits).count());
        rest = later;
        let calls = now.iter().map(|(turns, _)| commit_call(redis.keys(), turns, lease));
        let commands: Vec<_> = calls.chain([earliest_due(redis.keys())]).collect();
        let mut replies = redis.pipeline(&commands).await?;
        let EarliestDue(next) = EarliestDue::from_reply(replies.pop().ok_or(upstash_rest::Error::UnexpectedType)??)?;
        earliest = earliest.into_iter().chain(next).min();
        for (reply, (turns, failed)) in replies.into_iter().zip(now) {
            match reply.and_then(<(u64, u64, u64)>::from_reply) {
                Ok((kept, removed, lost)) => {
                    let counter = if failed.is_some() { &mut report.failed } else { &mut report.refreshed };
                    *counter += kept;
                    report.removed += removed;
                    report.lost += lost;
                }
                // Their leases stand, so that they are tried again in 30 s.
                Err(error) => {
                    report.failed += turns.len() as u64;
                    report.cause.get_or_insert_with(|| error.into());
                }
            }
        }
        if rest.is_empty() {
            return Ok(earliest);
        }
    }
}

fn commit_call(keys: Keys, turns: &[Turn], lease: &str) -> Command {
    let own = [keys.schedule(), keys.delay()].into_iter();
    let copies = turns.iter().map(|turn| keys.row(turn.row));
    let call = Command::script(&COMMIT, own.chain(copies)).arg(lease);
    turns.iter().fold(call, |call, turn| {
        call.arg(turn.row.as_str())
            .arg(turn.next.map(|next| next.to_string()).unwrap_or_default())
            .num(turn.schedule.lifetime().as_millis())
            .arg(turn.copy.map_or(&[][..], |json| json))
    })
}

/// What becomes of a leased row.
struct Turn<'a> {
    row: &'a RowId,
    schedule: Schedule,
    /// None if there is no such row any more, or it has no period: it is un-scheduled.
    next: Option<Timestamp>,
    /// None if the source failed: the old copy stays.
    copy: Option<&'a Bytes>,
}

impl<'a> Turn<'a> {
    fn new(
        row: &'a RowId,
        every: f64,
        leased: Timestamp,
        loaded: Result<&'a HashMap<String, Bytes>, &'a Error>,
    ) -> Self {
        let schedule = Schedule { every, next: leased };
        let copy = loaded.map(|loaded| loaded.get(row.as_str()));
        let wait = match copy {
            Ok(None) => None,
            Ok(Some(_)) => Some(schedule.period()),
            Err(_) => Some(schedule.period().clamp(BACK_OFF.0, BACK_OFF.1)),
        };
        let next = wait.filter(|_| every > 0.0).map(|wait| leased + wait);
        Self { row, schedule, next, copy: copy.ok().flatten() }
    }
}

/// Asks for the [`EarliestDue`] row.
pub fn earliest_due(keys: Keys) -> Command {
    Command::read("ZRANGE").arg(keys.schedule()).arg("0").arg("0").arg("WITHSCORES")
}

/// When the first row is due; None if no row is scheduled.
#[derive(Debug, Clone, Copy)]
pub struct EarliestDue(pub Option<Timestamp>);

impl FromReply for EarliestDue {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        let Pairs::<Bytes, f64>(first) = Pairs::from_reply(reply)?;
        Ok(Self(first.first().map(|(_, due)| Timestamp::from_score(*due))))
    }
}
