//! The traffic of the last minutes as a time series: buckets of equal length, each with a count for every metric.

use super::{MAX_ENTRIES, Metric, MetricCounts};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{keys, redis::Redis},
};
use upstash_rest::{Command, Pairs};

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
    /// At most 61 buckets, oldest first. The last bucket is incomplete.
    pub buckets: Vec<MetricCounts>,
}

impl TrafficSeries {
    /// A series of the `minutes` before `now`: about 60 buckets, each with a second for every minute, or fewer buckets
    /// of 5 s.
    fn empty(minutes: u64, now: Timestamp) -> Self {
        let width = minutes.max(MIN_BUCKET_SECONDS);
        let start = now.as_secs().saturating_sub(minutes * 60) / width * width;
        let starts = (start..=now.as_secs()).step_by(usize::try_from(width).unwrap_or(usize::MAX));
        Self { width, start, buckets: starts.map(|_| MetricCounts::default()).collect() }
    }

    /// Adds an entry of the moment `at`. A later moment than the last bucket counts there: the clock of Redis is ahead.
    fn add(&mut self, at: u64, fields: &[(String, String)]) {
        let Ok(index) = usize::try_from(at.saturating_sub(self.start) / self.width) else { return };
        let last = self.buckets.len().saturating_sub(1);
        let Some(bucket) = self.buckets.get_mut(index.min(last)) else { return };
        for (name, count) in fields {
            // Other versions of edgefront may write other fields.
            let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name);
            if let (Some(metric), Ok(count)) = (metric, count.parse()) {
                bucket.add(metric, count);
            }
        }
    }

    /// The start of each bucket.
    pub fn bucket_starts(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.buckets).map(|(index, _): (u64, _)| self.start + index * self.width)
    }

    /// The sums over all buckets.
    #[must_use]
    pub fn totals(&self) -> MetricCounts {
        self.buckets.iter().fold(MetricCounts::default(), |mut totals, bucket| {
            totals.add_all(bucket);
            totals
        })
    }
}

/// Reads the entries of the last `minutes`, newest first: over [`MAX_ENTRIES`], the oldest ones are missing.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_series(redis: &Redis, minutes: u64, now: Timestamp) -> Result<TrafficSeries, Error> {
    let mut series = TrafficSeries::empty(minutes, now);
    let since = series.start * 1000;
    let read = Command::read("XREVRANGE").arg(keys::TRAFFIC).arg("+").num(since).arg("COUNT").num(MAX_ENTRIES);
    let entries: Vec<(String, Pairs<String, String>)> = redis.run(read).await?;
    for (id, Pairs(fields)) in &entries {
        // An id is `<milliseconds>-<number>`.
        let at = id.split('-').next().and_then(|millis| millis.parse::<u64>().ok());
        series.add(at.unwrap_or_default() / 1000, fields);
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_at_most_61_buckets_of_at_least_5_seconds() {
        for (minutes, width) in [(1, 5), (5, 5), (15, 15), (60, 60)] {
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
        let field = |name: &str, number: &str| (name.to_owned(), number.to_owned());
        series.add(1_795_000_000 - 6, &[field("hit", "1")]);
        series.add(1_795_000_000, &[field("hit", "2"), field("orders", "1")]);
        series.add(1_795_000_004, &[field("hit", "3"), field("unknown", "9"), field("api", "many")]);
        series.add(1_795_000_900, &[field("hit", "4")]);
        let hits: Vec<_> = series.buckets.iter().map(|bucket| bucket.get(Metric::Hit)).collect();
        assert!(hits.ends_with(&[1, 0, 9]), "{hits:?}");
        assert_eq!((series.totals().get(Metric::Hit), series.totals().get(Metric::Order)), (10, 1));
    }
}
