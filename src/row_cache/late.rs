//! Which rows wait longest: what an operator looks at to see whether the crons keep up.

use serde::Serialize;

use super::{Schedule, read::age};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::{Command, FromReply, Pairs};

/// The rows whose turn comes first, or was missed longest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleReport {
    /// How many rows are scheduled in all.
    pub scheduled: u64,
    /// The most late first.
    pub rows: Vec<LateRow>,
}

/// How one row does; all times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateRow {
    #[serde(rename = "id", serialize_with = "as_text")]
    pub row: RowId,
    /// Its period; None for one that was scheduled without, and is un-scheduled at its next turn.
    pub every: Option<f64>,
    /// The Unix second of its next refresh; during one, the end of its lease.
    pub next: f64,
    /// By how much its turn was missed; 0 if it has not come yet.
    pub late: f64,
    /// Since when its copy is there; None without one.
    pub age: Option<f64>,
}

fn as_text<S: serde::Serializer>(row: &RowId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(row.as_str())
}

/// The `limit` rows that wait longest. Two pipelines, as no other call here: whose copies to look at is known after the first.
///
/// # Errors
/// [`Error::Redis`].
pub async fn latest(redis: &Redis, limit: u32, now: Timestamp) -> Result<ScheduleReport, Error> {
    let keys = redis.keys();
    let first = Command::read("ZRANGE").arg(keys.schedule()).num(0).num(limit.max(1) - 1).arg("WITHSCORES");
    let (scheduled, Pairs(dues)): (_, Pairs<String, f64>) =
        redis.all(&[Command::read("ZCARD").arg(keys.schedule()), first]).await?;
    // A name that is no RowId was written by somebody else and has no reader here.
    let dues: Vec<_> = dues
        .into_iter()
        .filter_map(|(row, due)| Some((RowId::parse(&row).ok()?, Timestamp::from_score(due))))
        .collect();
    if dues.is_empty() {
        return Ok(ScheduleReport { scheduled, rows: Vec::new() });
    }
    let periods = Command::read("ZMSCORE").arg(keys.delay()).args(dues.iter().map(|(row, _)| row.as_str()));
    let lives = dues.iter().map(|(row, _)| Command::read("PTTL").arg(keys.row(row)));
    let commands: Vec<_> = [periods].into_iter().chain(lives).collect();
    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let periods = Vec::<Option<f64>>::from_reply(replies.next().ok_or(upstash_rest::Error::UnexpectedType)??)?;
    let mut rows = Vec::with_capacity(dues.len());
    for (((row, next), every), left) in dues.into_iter().zip(periods).zip(replies) {
        let every = every.filter(|every| *every > 0.0);
        // -2: there is no copy.
        let left = Some(i64::from_reply(left?)?).filter(|left| *left != -2);
        let age = every.zip(left).map(|(every, left)| age(Schedule { every, next }, left, now).as_secs_f64());
        rows.push(LateRow { row, every, next: next.as_score(), late: now.since(next).as_secs_f64(), age });
    }
    Ok(ScheduleReport { scheduled, rows })
}
