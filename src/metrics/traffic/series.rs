//! The traffic of the last minutes as a time series: buckets of equal length, each with a sample.

use super::{
    MAX_ENTRIES, TrafficSample,
    roll_up::{HOUR, MINUTE},
    stream::{Entry, read_newest},
};
use crate::{
    ports::{error::Error, sort, time::Timestamp},
    schema::{keys, redis::Redis},
};

/// The shortest bucket, in seconds. An isolate writes an entry every two seconds, so a shorter bucket would be empty or
/// full by chance.
const MIN_BUCKET_SECONDS: u64 = 5;

/// A time series. All moments are Unix seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficSeries {
    /// The length of a bucket, in seconds.
    pub width: u64,
    /// The start of the first bucket: a multiple of `width`, so that later series have the same bucket borders.
    pub start: u64,
    /// At most 169 buckets, oldest first. The last bucket is incomplete.
    pub buckets: Vec<TrafficSample>,
    /// Samples of the visitors online, oldest first: moments and numbers.
    pub online: Vec<(u64, u64)>,
}

impl TrafficSeries {
    /// An empty series of the `minutes` before `now`. Up to an hour it has 60 buckets, but none shorter than 5 s. Up to a
    /// day, a bucket has 15 minutes; beyond that, an hour.
    fn empty(minutes: u64, now: Timestamp) -> Self {
        let width = match minutes {
            ..=60 => minutes.max(MIN_BUCKET_SECONDS),
            61..=1_440 => 15 * 60,
            _ => 60 * 60,
        };
        let start = now.as_secs().saturating_sub(minutes * 60) / width * width;
        let starts = (start..=now.as_secs()).step_by(usize::try_from(width).unwrap_or(usize::MAX));
        Self { width, start, buckets: starts.map(|_| TrafficSample::default()).collect(), online: Vec::new() }
    }

    fn add_all(&mut self, entries: &[Entry]) {
        for Entry { at, sample } in entries {
            self.add(at / 1000, sample);
        }
    }

    /// Adds a sample of the moment `at`. A moment after the last bucket counts in the last bucket: the clock of Redis is ahead.
    fn add(&mut self, at: u64, sample: &TrafficSample) {
        self.online.extend(sample.online.map(|online| (at, online)));
        let Ok(index) = usize::try_from(at.saturating_sub(self.start) / self.width) else { return };
        let last = self.buckets.len().saturating_sub(1);
        if let Some(bucket) = self.buckets.get_mut(index.min(last)) {
            bucket.merge(sample);
        }
    }

    /// The start of each bucket.
    pub fn bucket_starts(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.buckets).map(|(index, _): (u64, _)| self.start + index * self.width)
    }

    /// The sums over all buckets.
    #[must_use]
    pub fn totals(&self) -> TrafficSample {
        self.buckets.iter().fold(TrafficSample::default(), |mut totals, bucket| {
            totals.merge(bucket);
            totals
        })
    }
}

/// Reads the last `minutes`. A bucket of an hour is a sum of hours, as far as they are rolled up, then of minutes, then
/// of entries; a bucket of minutes begins at the minutes. Each level follows the one before, so nothing counts twice.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_series(redis: &Redis, minutes: u64, now: Timestamp) -> Result<TrafficSeries, Error> {
    let mut series = TrafficSeries::empty(minutes, now);
    let start = series.start * 1000;
    let levels = [(keys::TRAFFIC_HOURS, HOUR), (keys::TRAFFIC_MINUTES, MINUTE)];
    let mut since = start;
    for (key, length) in levels {
        if series.width * 1000 < length {
            continue;
        }
        let entries = read_newest(redis, key, MAX_ENTRIES, since).await?;
        since = entries.first().map_or(since, |newest| newest.at + length);
        series.add_all(&entries);
    }
    if series.width * 1000 < MINUTE {
        // The entries have no samples of the visitors online.
        for Entry { at, sample } in read_newest(redis, keys::TRAFFIC_MINUTES, MAX_ENTRIES, start).await? {
            series.online.extend(sample.online.map(|online| (at / 1000, online)));
        }
    }
    series.add_all(&read_newest(redis, keys::TRAFFIC, MAX_ENTRIES, since).await?);
    sort::sort_by(&mut series.online, Ord::cmp);
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::{super::Metric, *};

    #[test]
    fn a_series_has_at_most_169_buckets_of_at_least_5_seconds() {
        for (minutes, width) in [(1, 5), (5, 5), (15, 15), (60, 60), (1_440, 900), (10_080, 3_600)] {
            for second in [0, 1, 59, 3_599] {
                let now = Timestamp::from_millis((1_795_000_000 + second) * 1000);
                let series = TrafficSeries::empty(minutes, now);
                assert_eq!((series.width, series.start % width), (width, 0));
                let complete = minutes * 60 / width;
                let length = series.buckets.len() as u64;
                assert!((complete..=complete + 1).contains(&length), "{minutes} min: {length}");
                let last = series.bucket_starts().last().unwrap();
                assert!((last..last + width).contains(&now.as_secs()), "the last bucket is incomplete");
            }
        }
    }

    #[test]
    fn entries_of_several_isolates_add_up_in_their_buckets() {
        let now = Timestamp::from_millis(1_795_000_002_000);
        let mut series = TrafficSeries::empty(5, now);
        let sample = |fields: &[(Metric, u64)]| {
            let mut sample = TrafficSample::default();
            for (metric, count) in fields {
                sample.counts.add(*metric, *count);
            }
            sample
        };
        series.add(1_795_000_000 - 6, &sample(&[(Metric::Hit, 1)]));
        series.add(1_795_000_000, &sample(&[(Metric::Hit, 2), (Metric::Order, 1)]));
        series.add(1_795_000_004, &sample(&[(Metric::Hit, 3)]));
        series.add(1_795_000_900, &sample(&[(Metric::Hit, 4)]));
        let hits: Vec<_> = series.buckets.iter().map(|bucket| bucket.counts.get(Metric::Hit)).collect();
        assert!(hits.ends_with(&[1, 0, 9]), "{hits:?}");
        let totals = series.totals().counts;
        assert_eq!((totals.get(Metric::Hit), totals.get(Metric::Order)), (10, 1));
    }
}
