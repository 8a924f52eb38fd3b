//! Reads copies of rows, with their age. A scheduled row without a copy is loaded at once.

use std::{slice, time::Duration};

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::{
    RowSource, Schedule,
    lease::LeaseReason,
    refresh::{LoadedRows, load},
};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::RowId, redis::Redis},
};
use upstash_rest::{Command, next_reply};

/// The copy of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedRow {
    /// A JSON object: column → value.
    pub json: Bytes,
    /// Time since the copy was read from the source, at most: the time of the query is part of it.
    pub age: Duration,
    /// The refresh period.
    pub period: Duration,
    /// The refresh is late by more than a period: the caller should [`refresh`](super::refresh()) the row after its
    /// response.
    pub overdue: bool,
}

/// The copy of `row`; None if the row is not scheduled, or if its source no longer has it.
///
/// One pipeline, because the reads are independent. A missing copy takes three more requests: lease, query, commit.
///
/// # Errors
/// [`Error::NotYet`] if the row is scheduled and has no copy: it is being loaded, or its source fails.
/// [`Error::Redis`].
pub async fn read(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    row: &RowId,
    now: Timestamp,
) -> Result<Option<CachedRow>, Error> {
    read_many(redis, source, slice::from_ref(row), now).await?.pop().map_or(Ok(None), RowState::into_copy)
}

/// The states of `rows`, in the same order. Loads the scheduled rows without a copy.
///
/// One pipeline, as [`read`].
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_many(
    redis: &Redis,
    source: Option<&RowSource<'_>>,
    rows: &[RowId],
    now: Timestamp,
) -> Result<Vec<RowState>, Error> {
    let mut states = read_states(redis, rows, now).await?;
    let is_missing = |(_, state): &(&RowId, &RowState)| matches!(state, RowState::CopyMissing(_));
    let missing: Vec<_> = rows.iter().zip(&states).filter(is_missing).map(|(row, _)| row.clone()).collect();
    if let (Some(source), false) = (source, missing.is_empty()) {
        let (loaded, _) = load(redis, source, &missing, LeaseReason::CopyMissing, now).await?;
        for (row, state) in rows.iter().zip(&mut states) {
            state.fill_from(&loaded, row, source.since(now));
        }
    }
    Ok(states)
}

/// A row in Redis.
#[derive(Debug, Clone, PartialEq)]
pub enum RowState {
    Cached(CachedRow),
    /// The row is scheduled and has no copy yet: it is being loaded, or its source fails.
    CopyMissing(Schedule),
    /// The row is not scheduled, or its source no longer has it.
    NotScheduled,
}

impl RowState {
    /// The copy, if there is one.
    #[must_use]
    pub const fn copy(&self) -> Option<&CachedRow> {
        if let Self::Cached(copy) = self { Some(copy) } else { None }
    }

    /// The copy; None if there is no such row.
    ///
    /// # Errors
    /// [`Error::NotYet`] if the copy is missing.
    pub(super) fn into_copy(self) -> Result<Option<CachedRow>, Error> {
        match self {
            Self::Cached(copy) => Ok(Some(copy)),
            Self::CopyMissing(_) => Err(Error::NotYet),
            Self::NotScheduled => Ok(None),
        }
    }

    /// Replaces a missing copy of `row` by the row that was loaded `age` ago. Without an answer of the source it stays
    /// missing.
    fn fill_from(&mut self, loaded: &LoadedRows, row: &RowId, age: Duration) {
        let Self::CopyMissing(schedule) = self else { return };
        match loaded.get(row).cloned() {
            Some(Some(json)) => {
                let (period, overdue) = (schedule.period(), false);
                *self = Self::Cached(CachedRow { json, age, period, overdue });
            }
            Some(None) => *self = Self::NotScheduled,
            None => {}
        }
    }
}

/// Reads the rows' state without loading any. One pipeline of three commands, and one more for each row.
async fn read_states(redis: &Redis, rows: &[RowId], now: Timestamp) -> Result<Vec<RowState>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let keys = redis.keys();
    let scores = |key: String| Command::read("ZMSCORE").arg(key).args(rows.iter().map(RowId::as_str));
    let copies = Command::read("MGET").args(rows.iter().map(|row| keys.row(row)));
    let ttls = rows.iter().map(|row| Command::read("PTTL").arg(keys.row(row)));
    let commands: Vec<_> = [copies, scores(keys.delay()), scores(keys.schedule())].into_iter().chain(ttls).collect();
    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let copies: Vec<Option<Bytes>> = next_reply(&mut replies)?;
    let periods: Vec<Option<f64>> = next_reply(&mut replies)?;
    let dues: Vec<Option<f64>> = next_reply(&mut replies)?;
    let (mut states, mut invalid) = (Vec::with_capacity(rows.len()), 0_usize);
    for ((copy, every), due) in copies.into_iter().zip(periods).zip(dues) {
        let ttl: i64 = next_reply(&mut replies)?;
        let is_present = copy.is_some();
        let copy = copy.filter(is_object);
        invalid += usize::from(is_present && copy.is_none());
        states.push(match (Schedule::new(every, due), copy) {
            (None, _) => RowState::NotScheduled,
            (Some(schedule), None) => RowState::CopyMissing(schedule),
            (Some(schedule), Some(json)) => {
                let (age, period) = (copy_age(schedule, ttl, now), schedule.period());
                RowState::Cached(CachedRow { json, age, period, overdue: schedule.is_overdue(now) })
            }
        });
    }
    if invalid > 0 {
        let rows = if invalid == 1 {
            "1 cached row is not a JSON object".to_owned()
        } else {
            format!("{invalid} cached rows are not JSON objects")
        };
        log::error!("{rows} and counts as missing: look for other code that writes inv:");
    }
    Ok(states)
}

/// Returns whether a copy is a JSON object. Other code may have written anything, and one such copy would break the
/// list of all rows. Such a copy counts as missing, so it is loaded again.
fn is_object(copy: &Bytes) -> bool {
    let text = std::str::from_utf8(copy).unwrap_or_default();
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The age of a copy with `ttl` milliseconds to live. The book's code writes copies without expiry (`ttl` is -1) and
/// then sets the next refresh one period ahead: their age follows from the schedule.
pub(super) fn copy_age(schedule: Schedule, ttl: i64, now: Timestamp) -> Duration {
    match u64::try_from(ttl) {
        Ok(ttl) => schedule.lifetime().saturating_sub(Duration::from_millis(ttl)),
        Err(_) => now.since(schedule.next - schedule.period()),
    }
}
