//! The copies of rows, with their age. A read is one pipeline, unless a scheduled row has no copy: then it is loaded at once.

use std::time::Duration;

use bytes::Bytes;

use super::{RefreshReport, RowSource, Schedule, refresh::load};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::{Command, FromReply, Reply};

/// The copy of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedRow {
    /// A JSON object: column → value.
    pub json: Bytes,
    /// Since it was read from the source.
    pub age: Duration,
    /// How often it is refreshed.
    pub period: Duration,
    /// Its turn was missed by more than a period: the caller should [`refresh`](super::refresh) it behind the answer.
    pub overdue: bool,
}

/// The copy of `row`; None if it is not scheduled, or its source no longer has it.
///
/// # Errors
/// [`Error::NotYet`] if it is scheduled and there is no copy: it is being loaded, or its source fails. [`Error::Redis`].
pub async fn read(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    row: &RowId,
    now: Timestamp,
) -> Result<Option<CachedRow>, Error> {
    match find(redis, source, std::slice::from_ref(row), now).await?.pop() {
        Some(Found::Copy(row)) => Ok(Some(row)),
        Some(Found::NotYet(_)) => Err(Error::NotYet("row")),
        Some(Found::NotScheduled) | None => Ok(None),
    }
}

/// The copies of `rows`, in their order; None for one that is not scheduled, or has no copy yet.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_many(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<Vec<Option<CachedRow>>, Error> {
    let copy = |found| if let Found::Copy(row) = found { Some(row) } else { None };
    Ok(find(redis, source, rows, now).await?.into_iter().map(copy).collect())
}

enum Found {
    Copy(CachedRow),
    NotYet(Schedule),
    NotScheduled,
}

/// Reads the copies, and loads those that are scheduled but absent.
async fn find(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<Vec<Found>, Error> {
    let mut found = look(redis, rows, now).await?;
    let is_absent = |(_, found): &(&RowId, &Found)| matches!(found, Found::NotYet(_));
    let absent: Vec<_> = rows.iter().zip(&found).filter(is_absent).map(|(row, _)| row.clone()).collect();
    if let (Some(source), false) = (source, absent.is_empty()) {
        let loaded = load(redis, source, &absent, true, now, &mut RefreshReport::default()).await?;
        for (row, found) in rows.iter().zip(&mut found) {
            let Found::NotYet(schedule) = found else { continue };
            match loaded.get(row).cloned() {
                Some(Some(json)) => {
                    let (age, period, overdue) = (Duration::ZERO, schedule.period(), false);
                    *found = Found::Copy(CachedRow { json, age, period, overdue });
                }
                Some(None) => *found = Found::NotScheduled,
                None => {}
            }
        }
    }
    Ok(found)
}

/// Reads the copies as they are: one pipeline of three commands, and one more for each row.
async fn look(redis: &Redis, rows: &[RowId], now: Timestamp) -> Result<Vec<Found>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let keys = redis.keys();
    let scores = |key: String| Command::read("ZMSCORE").arg(key).args(rows.iter().map(RowId::as_str));
    let copies = Command::read("MGET").args(rows.iter().map(|row| keys.row(row)));
    let lives = rows.iter().map(|row| Command::read("PTTL").arg(keys.row(row)));
    let commands: Vec<_> = [copies, scores(keys.delay()), scores(keys.schedule())].into_iter().chain(lives).collect();
    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let copies: Vec<Option<Bytes>> = next(&mut replies)?;
    let periods: Vec<Option<f64>> = next(&mut replies)?;
    let dues: Vec<Option<f64>> = next(&mut replies)?;
    let mut found = Vec::with_capacity(rows.len());
    for ((copy, every), due) in copies.into_iter().zip(periods).zip(dues) {
        let left: i64 = next(&mut replies)?;
        found.push(match (Schedule::new(every, due), copy) {
            (None, _) => Found::NotScheduled,
            (Some(schedule), None) => Found::NotYet(schedule),
            (Some(schedule), Some(json)) => {
                let (age, period) = (age(schedule, left, now), schedule.period());
                Found::Copy(CachedRow { json, age, period, overdue: schedule.is_overdue(now) })
            }
        });
    }
    Ok(found)
}

/// Since when a copy with `left` ms to live is there. The book's code writes copies that live for ever (`left` is -1), and
/// then sets the next refresh one period ahead.
pub(super) fn age(schedule: Schedule, left: i64, now: Timestamp) -> Duration {
    match u64::try_from(left) {
        Ok(left) => schedule.lifetime().saturating_sub(Duration::from_millis(left)),
        Err(_) => now.since(schedule.next - schedule.period()),
    }
}

fn next<T: FromReply>(replies: &mut impl Iterator<Item = Result<Reply, upstash_rest::Error>>) -> Result<T, Error> {
    Ok(T::from_reply(replies.next().ok_or(upstash_rest::Error::UnexpectedType)??)?)
}
