//! Roll-ups: the stream of entries as one sample for each minute, for each hour, and as sums since the beginning.
//!
//! The identifier of a roll-up is the start of its period. Redis refuses an identifier that is not newer than the last
//! one. So a doubled or repeated run changes nothing, and no script is needed.

use std::time::Duration;

use serde::Serialize;

use super::{
    TrafficSample,
    errors::{MAX_ENTRY_KINDS, MAX_KINDS},
    stream::{Entry, read_after, read_newest},
};
use crate::{
    metrics::storage,
    ports::{error::Error, time::Timestamp},
    schema::{keys, redis::Redis},
};
use upstash_rest::Command;

/// Milliseconds of a minute and of an hour.
pub(super) const MINUTE: u64 = 60_000;
pub(super) const HOUR: u64 = 60 * MINUTE;
/// Minutes that stay: a day and an hour, about 1 MB.
const MAX_MINUTES: u32 = 1_500;
/// Minutes with traffic that one run rolls up. They are one pipeline, and the gateway refuses more than 1,000 commands.
/// Together with the minutes of an hour that has begun, they are fewer than [`MAX_MINUTES`], because the hours are summed
/// up from the minutes.
const MINUTES_PER_RUN: usize = 900;
/// Hours that stay: eight days, about 150 KB.
const MAX_HOURS: u32 = 200;
/// A minute is rolled up this long after its end, because the clock of Redis may be behind.
const DELAY: Duration = Duration::from_secs(30);
/// If the last entry is older than this, a run has nothing to do: the hour of that entry is already rolled up. After an
/// outage of the crons, the next entry starts the missed roll-ups.
const IDLE_AFTER: Duration = Duration::from_mins(80);

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RollUpReport {
    pub minutes: usize,
    pub hours: usize,
}

/// Rolls up the minutes and hours that have ended, oldest first, and at most [`MINUTES_PER_RUN`]. The next run continues.
/// None if there was no recent traffic; finding that out costs one command.
///
/// # Errors
/// [`Error::Redis`]. The next run repeats the rest.
pub async fn roll_up(redis: &Redis, now: Timestamp) -> Result<Option<RollUpReport>, Error> {
    let newest = read_newest(redis, keys::TRAFFIC, 1, 0).await?;
    if newest.first().is_none_or(|entry| now.since(Timestamp::from_millis(entry.at)) > IDLE_AFTER) {
        return Ok(None);
    }
    let (mut totals, since) = read_rolled_totals(redis).await?;
    let ended = (now - DELAY).as_millis() / MINUTE * MINUTE;
    if ended <= since {
        return Ok(Some(RollUpReport::default()));
    }
    let (mut minutes, mut until) = (Sums::default(), ended);
    read_after(redis, keys::TRAFFIC, since..ended, &mut |entry| {
        let minute = entry.at / MINUTE * MINUTE;
        if minutes.0.len() == MINUTES_PER_RUN && !minutes.ends_with(minute) {
            until = until.min(minute);
            return;
        }
        totals.merge(&entry.sample);
        minutes.add(minute, &entry.sample);
    })
    .await?;
    if until == ended
        && let Some((_, last)) = minutes.0.last_mut()
    {
        last.online = Some(storage::count_online(redis, now).await?);
    }
    store(redis, keys::TRAFFIC_MINUTES, MAX_MINUTES, &minutes).await?;
    let mut hours = Sums::default();
    let (from, to) = (since / HOUR * HOUR, until / HOUR * HOUR);
    if from < to {
        read_after(redis, keys::TRAFFIC_MINUTES, from..to, &mut |entry| {
            hours.add(entry.at / HOUR * HOUR, &entry.sample);
        })
        .await?;
        store(redis, keys::TRAFFIC_HOURS, MAX_HOURS, &hours).await?;
    }
    // Last, because the next run begins at its identifier.
    totals.online = None;
    store(redis, keys::TRAFFIC_TOTALS, 1, &Sums(vec![(until, totals)])).await?;
    Ok(Some(RollUpReport { minutes: minutes.0.len(), hours: hours.0.len() }))
}

/// The sums of periods by their start, in order.
#[derive(Default)]
struct Sums(Vec<(u64, TrafficSample)>);

impl Sums {
    /// Adds a sample of the last period or of a later one.
    fn add(&mut self, start: u64, sample: &TrafficSample) {
        if !self.ends_with(start) {
            self.0.push((start, TrafficSample::default()));
        }
        if let Some((_, sum)) = self.0.last_mut() {
            sum.merge(sample);
        }
    }

    fn ends_with(&self, start: u64) -> bool {
        self.0.last().is_some_and(|(last, _)| *last == start)
    }
}

/// The sums since the first roll-up: those that are rolled up, and all entries since then. The counts only grow while
/// the crons run.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_totals(redis: &Redis) -> Result<TrafficSample, Error> {
    let (mut totals, since) = read_rolled_totals(redis).await?;
    read_after(redis, keys::TRAFFIC, since..u64::MAX, &mut |entry| totals.merge(&entry.sample)).await?;
    Ok(totals)
}

/// The sums that are rolled up, and the end of their period, in milliseconds.
async fn read_rolled_totals(redis: &Redis) -> Result<(TrafficSample, u64), Error> {
    let rolled = read_newest(redis, keys::TRAFFIC_TOTALS, 1, 0).await?;
    Ok(rolled.into_iter().next().map_or_else(Default::default, |Entry { at, sample }| (sample, at)))
}

/// Appends samples to a stream, by their start. Leaves out those that another run has appended.
async fn store(redis: &Redis, key: &str, limit: u32, Sums(samples): &Sums) -> Result<(), Error> {
    // The sums keep every kind of error that they once had, so that no count falls.
    let max_kinds = if limit == 1 { MAX_KINDS } else { MAX_ENTRY_KINDS };
    let commands: Vec<_> = samples
        .iter()
        .map(|(at, sample)| {
            let add = Command::write("XADD").arg(key).arg("MAXLEN").arg(if limit == 1 { "=" } else { "~" }).num(limit);
            // An entry has at least one field.
            let add = add.arg(format!("{at}-0")).arg("rolled").num(1).repeatable();
            sample.fields(max_kinds).fold(add, |add, (name, value)| add.arg(name).arg(value))
        })
        .collect();
    let mut refused = Vec::new();
    for (reply, (at, _)) in redis.pipeline(&commands).await?.into_iter().zip(samples) {
        match reply {
            Err(error @ upstash_rest::Error::Refused { .. }) => refused.push((*at, error)),
            reply => drop(reply?),
        }
    }
    let Some((first, _)) = refused.first() else { return Ok(()) };
    // Redis does not say in a code why it refused a sample. A refusal is harmless if another run has appended that period,
    // or a later sum.
    let mut present = Vec::new();
    read_after(redis, key, *first..u64::MAX, &mut |entry| present.push(entry.at)).await?;
    refused.retain(|(at, _)| !present.contains(at) && (limit > 1 || present.is_empty()));
    refused.pop().map_or(Ok(()), |(_, error)| Err(error.into()))
}
