//! Refreshes rows: lease, load, commit. A lease is 30 s; whoever loses it writes nothing.
//!
//! A script each for the lease and the commit, since what they write depends on the schedule they read; between the two lies
//! the slow part, the source.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use serde::Serialize;

use super::{
    Schedule,
    source::{BATCH, Source},
};
use crate::{
    error::Error,
    ids::RowId,
    keys::Keys,
    time::{Clock, Timestamp},
    upstash::{self, Command, FromReply, Pairs, Redis, Reply, Script, script},
};

pub static CLAIM: Script = script!("claim", "91542c5d5d7798e2b5c8ef85caf1e9ec33cfc37b");
pub static COMMIT: Script = script!("commit", "724c882d4fe2ab6eac87128d5b689ac27491bc8c");

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
    /// Rows whose source failed: they keep their copy and are tried again after their period, 30 s at the most.
    pub failed: u64,
    /// Rows that somebody scheduled anew or un-scheduled meanwhile.
    pub lost: u64,
    /// Why the first of the failed ones failed.
    #[serde(skip)]
    pub cause: Option<Error>,
}

/// How long [`refresh_due`] works.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Rows due later are left to the next run.
    pub due_by: Timestamp,
    /// No row is leased after this.
    pub until: Timestamp,
}

/// Refreshes what is due, sleeping until the next row is, until nothing more is due within `span`.
///
/// This is why a row with a period of 5 s needs no daemon: a cron run works on for nearly the minute that it is for. Idle it
/// costs one command. Safe to run twice: a row leased by one run is not due for the other.
///
/// # Errors
/// [`Error::Redis`]; the rows leased then are due again within 30 s. A source that fails is no error, but counted.
pub async fn refresh_due(
    redis: &Redis,
    source: &Source<'_>,
    clock: &dyn Clock,
    span: Span,
) -> Result<RefreshReport, Error> {
    let mut report = RefreshReport::default();
    let Earliest(mut earliest) = redis.run(earliest_due(redis.keys())).await?;
    while let Some(due) = earliest.filter(|due| *due <= span.due_by) {
        let now = clock.now();
        if now >= span.until {
            break;
        }
        if due > now {
            clock.sleep(due.since(now)).await;
        }
        let claims = claim(redis, &[], clock.now()).await?;
        earliest = work(redis, source, claims, &mut report).await?.earliest;
    }
    Ok(report)
}

/// Refreshes those of `rows` that are scheduled and neither leased nor backing off: for a row whose turn was missed, or that was
/// scheduled just now.
///
/// # Errors
/// As [`refresh_due`].
pub async fn refresh(
    redis: &Redis,
    source: &Source<'_>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<RefreshReport, Error> {
    let mut report = RefreshReport::default();
    load(redis, source, rows, now, &mut report).await?;
    Ok(report)
}

/// As [`refresh`]; also returns what was loaded.
pub(super) async fn load(
    redis: &Redis,
    source: &Source<'_>,
    rows: &[RowId],
    now: Timestamp,
    report: &mut RefreshReport,
) -> Result<Loaded, Error> {
    let mut loaded = HashMap::new();
    for batch in rows.chunks(BATCH) {
        let claims = claim(redis, batch, now).await?;
        if !claims.rows.is_empty() {
            loaded.extend(work(redis, source, claims, report).await?.loaded);
        }
    }
    Ok(loaded)
}

/// Rows leased to us.
struct Claims {
    now: Timestamp,
    /// Each with its period in seconds, 0 if it has none.
    rows: Vec<(RowId, f64)>,
}

/// Leases rows that are due, or of `named` those that may be.
async fn claim(redis: &Redis, named: &[RowId], now: Timestamp) -> Result<Claims, Error> {
    // Scores of the book's code are finer than a millisecond: what is due within this one is due.
    let due_by = now + Duration::from_millis(1);
    let keys = redis.keys();
    let command = Command::script(&CLAIM, [keys.schedule(), keys.delay()])
        .num(due_by)
        .num(now + LEASE)
        .num(BATCH)
        .args(named.iter().map(RowId::as_str));
    let Pairs::<Bytes, f64>(granted) = redis.run(command).await?;
    // A name that is no RowId was written by somebody else and has no reader here. Its lease keeps it out of the way.
    let row = |name: Bytes| RowId::parse(std::str::from_utf8(&name).ok()?).ok();
    let rows = granted.into_iter().filter_map(|(name, every)| Some((row(name)?, every))).collect();
    Ok(Claims { now, rows })
}

/// What the source said of leased rows: None for one that does not exist. Empty if it failed.
pub(super) type Loaded = HashMap<RowId, Option<Bytes>>;

/// What came of some claims.
struct Work {
    loaded: Loaded,
    /// When the next row is due, of all that are scheduled.
    earliest: Option<Timestamp>,
}

/// Loads the leased rows in one query and commits each in one pipeline, which asks for the next row that is due too: 3
/// requests in all, since an invocation on the Free plan has only 50.
async fn work(redis: &Redis, source: &Source<'_>, claims: Claims, report: &mut RefreshReport) -> Result<Work, Error> {
    let wanted: Vec<_> = claims.rows.iter().filter(|(_, every)| *every > 0.0).map(|(row, _)| row).collect();
    let loaded = if wanted.is_empty() { Ok(HashMap::new()) } else { source.load(&wanted).await };
    let turns: Vec<_> =
        claims.rows.iter().map(|(row, every)| Turn::new(row, *every, claims.now, loaded.as_ref())).collect();
    let keys = redis.keys();
    let commits = turns.iter().map(|turn| turn.commit(keys, claims.now));
    let commands: Vec<_> = commits.chain([earliest_due(keys)]).collect();
    let mut replies = redis.pipeline(&commands).await?;
    let Earliest(earliest) = Earliest::from_reply(replies.pop().ok_or(upstash::Error::UnexpectedType)??)?;
    // Also our own next turns: a server that had to be sent the script in full has answered the question before the commits.
    let earliest = turns.iter().filter_map(|turn| turn.next).chain(earliest).min();
    for reply in replies {
        match (reply.and_then(String::from_reply).as_deref(), &loaded) {
            (Ok("lost"), _) => report.lost += 1,
            (Ok("removed"), _) => report.removed += 1,
            (Ok(_), Ok(_)) => report.refreshed += 1,
            (Ok(_), Err(_)) => report.failed += 1,
            // Its lease stands, so that it is tried again in 30 s.
            (Err(error), _) => {
                report.failed += 1;
                report.cause.get_or_insert_with(|| error.clone().into());
            }
        }
    }
    let loaded = match &loaded {
        Ok(rows) => wanted.into_iter().map(|row| (row.clone(), rows.get(row.as_str()).cloned())).collect(),
        Err(cause) => {
            report.cause.get_or_insert_with(|| cause.clone());
            HashMap::new()
        }
    };
    Ok(Work { loaded, earliest })
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

    fn commit(&self, keys: Keys, leased: Timestamp) -> Command {
        Command::script(&COMMIT, [keys.schedule(), keys.delay(), keys.row(self.row)])
            .arg(self.row.as_str())
            .num(leased + LEASE)
            .arg(self.next.map(|next| next.to_string()).unwrap_or_default())
            .num(self.schedule.lifetime().as_millis())
            .arg(self.copy.map_or(&[][..], |json| json))
    }
}

/// Asks for the [`Earliest`] row.
pub fn earliest_due(keys: Keys) -> Command {
    Command::read("ZRANGE").arg(keys.schedule()).arg("0").arg("0").arg("WITHSCORES")
}

/// When the first row is due; None if no row is scheduled.
#[derive(Debug, Clone, Copy)]
pub struct Earliest(pub Option<Timestamp>);

impl FromReply for Earliest {
    fn from_reply(reply: Reply) -> Result<Self, upstash::Error> {
        let Pairs::<Bytes, f64>(first) = Pairs::from_reply(reply)?;
        Ok(Self(first.first().map(|(_, due)| Timestamp::from_score(*due))))
    }
}
