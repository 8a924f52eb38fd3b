//! The rows that are most overdue: shows the operator whether the crons keep up.

use serde::Serialize;

use super::{Schedule, read::copy_age};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::{Command, FromReply, Pairs, next_reply};

/// The head of the schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleReport {
    /// All scheduled rows.
    pub scheduled: u64,
    /// The rows with the earliest refresh times, in that order: overdue rows come first.
    pub rows: Vec<LateRow>,
}

/// The schedule and the copy of one row; all times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateRow {
    #[serde(rename = "id")]
    pub row: RowId,
    /// The period; None for a row without one, which its next refresh unschedules.
    pub every: Option<f64>,
    /// The Unix second of the next refresh.
    pub next: f64,
    /// Lateness of the refresh; 0 if it is not due yet.
    #[serde(rename = "late")]
    pub lateness: f64,
    /// The age of the copy; None without a copy.
    pub age: Option<f64>,
}

/// Reports the first `limit` rows of the schedule.
///
/// Two pipelines: the first names the rows whose copies the second looks at. The commands of each are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn schedule_report(redis: &Redis, limit: u32, now: Timestamp) -> Result<ScheduleReport, Error> {
    let keys = redis.keys();
    let first = Command::read("ZRANGE").arg(keys.schedule()).num(0).num(limit.max(1) - 1).arg("WITHSCORES");
    let (scheduled, Pairs(dues)): (_, Pairs<String, f64>) =
        redis.all(&[Command::read("ZCARD").arg(keys.schedule()), first]).await?;
    // Other code may have scheduled names that are not row ids; no visitor can read them.
    let dues: Vec<_> = dues
        .into_iter()
        .filter_map(|(row, due)| Some((RowId::parse(&row).ok()?, Timestamp::from_score(due))))
        .collect();
    if dues.is_empty() {
        return Ok(ScheduleReport { scheduled, rows: Vec::new() });
    }
    let periods = Command::read("ZMSCORE").arg(keys.delay()).args(dues.iter().map(|(row, _)| row.as_str()));
    let ttls = dues.iter().map(|(row, _)| Command::read("PTTL").arg(keys.row(row)));
    let commands: Vec<_> = [periods].into_iter().chain(ttls).collect();
    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let periods: Vec<Option<f64>> = next_reply(&mut replies)?;
    let mut rows = Vec::with_capacity(dues.len());
    for (((row, next), every), ttl) in dues.into_iter().zip(periods).zip(replies) {
        let every = every.filter(|every| *every > 0.0);
        // PTTL is -2 without a copy.
        let ttl = Some(i64::from_reply(ttl?)?).filter(|ttl| *ttl != -2);
        let schedule = every.map(|every| Schedule { every, next });
        let age = schedule.zip(ttl).map(|(schedule, ttl)| copy_age(schedule, ttl, now).as_secs_f64());
        let next = schedule.map_or(next, |schedule| schedule.next_refresh(now));
        rows.push(LateRow { row, every, next: next.as_score(), lateness: now.since(next).as_secs_f64(), age });
    }
    Ok(ScheduleReport { scheduled, rows })
}
