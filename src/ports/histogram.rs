//! A log-linear histogram of durations: exact up to 31 ms, then 16 buckets for each power of two. So a percentile is
//! wrong by at most 1/32 (3.1%), beside the clock's own millisecond. Histograms with these fixed buckets merge exactly.

use std::{fmt::Write, time::Duration};

/// Each power of two has 2⁴ buckets.
const BITS: u32 = 4;
/// The longest duration, in milliseconds. A longer one counts as this one.
const MAX: u32 = (1 << 16) - 1;

/// Numbers of durations by length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// The sum of all durations, in milliseconds.
    sum: u64,
    /// The bucket of each index. Buckets that would be empty at the end are left out.
    buckets: Vec<u64>,
}

impl Histogram {
    /// A histogram without durations.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 0, buckets: Vec::new() }
    }

    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(MAX.into());
        self.sum += millis;
        self.add_bucket(index_of(millis), 1);
    }

    /// Adds the durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        for (index, count) in other.buckets.iter().enumerate() {
            self.add_bucket(index, *count);
        }
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all durations, in milliseconds.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The number of durations below `millis`, which must be the lower limit of a bucket.
    #[must_use]
    pub fn count_below(&self, millis: u64) -> u64 {
        self.buckets.iter().take(index_of(millis)).sum()
    }

    /// The duration that `percent` of all durations do not exceed, in milliseconds: the middle of its bucket. None
    /// without durations.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far below 2⁵³")]
    pub fn percentile(&self, percent: u64) -> Option<f64> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let index = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let (from, to) = (lower_limit(index), lower_limit(index + 1));
        Some((from + to - 1) as f64 / 2.0)
    }

    /// The sum, then `index:count` for each bucket that is not empty. The empty histogram is the empty string.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for (index, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            if text.is_empty() {
                text = self.sum.to_string();
            }
            // Writing to a string cannot fail.
            let _ = write!(text, " {index}:{count}");
        }
        text
    }

    /// Adds the durations of an [encoded](Self::encode) histogram. Parts that this version does not know are left out.
    pub fn merge_encoded(&mut self, text: &str) {
        let mut parts = text.split(' ');
        self.sum = self.sum.saturating_add(parts.next().and_then(|sum| sum.parse().ok()).unwrap_or_default());
        for (index, count) in parts.filter_map(|part| part.split_once(':')) {
            if let (Ok(index), Ok(count)) = (index.parse(), count.parse())
                && index <= index_of(MAX.into())
            {
                self.add_bucket(index, count);
            }
        }
    }

    fn add_bucket(&mut self, index: usize, count: u64) {
        if self.buckets.len() <= index && count > 0 {
            self.buckets.resize(index + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket = bucket.saturating_add(count);
        }
    }
}

/// The index of the bucket that holds a duration.
fn index_of(millis: u64) -> usize {
    let millis = u32::try_from(millis).map_or(MAX, |millis| millis.min(MAX));
    let octave = millis.checked_ilog2().unwrap_or_default().saturating_sub(BITS);
    ((octave << BITS) + (millis >> octave)) as usize
}

/// The shortest duration of a bucket, in milliseconds.
const fn lower_limit(index: usize) -> u64 {
    let octave = (index >> BITS).saturating_sub(1);
    ((index - (octave << BITS)) as u64) << octave
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(durations: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for millis in durations {
            histogram.record(Duration::from_millis(*millis));
        }
        histogram
    }

    #[test]
    fn the_buckets_cover_every_duration_once() {
        let starts: Vec<_> = (0..=index_of(MAX.into())).map(lower_limit).collect();
        assert!(starts.is_sorted_by(|one, next| one < next) && starts.len() == 208, "{starts:?}");
        for (index, start) in starts.into_iter().enumerate() {
            assert_eq!((index_of(start), index_of(lower_limit(index + 1) - 1)), (index, index));
        }
        assert_eq!(lower_limit(208), u64::from(MAX) + 1);
    }

    #[test]
    fn percentiles_of_known_durations() {
        assert_eq!(Histogram::default().percentile(50), None);
        let hundred = of(&(1..=100).collect::<Vec<_>>());
        assert_eq!([50, 95, 99].map(|percent| hundred.percentile(percent)), [Some(50.5), Some(93.5), Some(97.5)]);
        assert_eq!((of(&[0, 0, 7]).percentile(50), of(&[0, 0, 7]).percentile(99)), (Some(0.0), Some(7.0)));
        assert_eq!((hundred.sum(), hundred.count(), hundred.count_below(64)), (5_050, 100, 63));
        assert_eq!(of(&[700_000]), of(&[65_535]));
    }

    #[test]
    fn an_encoded_histogram_names_only_buckets_that_are_not_empty() {
        assert_eq!((of(&[]).encode(), of(&[0, 0, 33]).encode()), (String::new(), "33 0:2 32:1".to_owned()));
        let mut read = Histogram::default();
        for text in ["", "x", "5 5:1 208:1 9:x y", "7 7:1"] {
            read.merge_encoded(text);
        }
        assert_eq!(read, of(&[5, 7]));
    }

    proptest! {
        #[test]
        fn merging_is_exact_and_a_percentile_is_wrong_by_at_most_a_32nd(
            one in prop::collection::vec(0..=65_535_u64, 0..50),
            other in prop::collection::vec(0..=65_535_u64, 1..50),
            percent in 1u64..=100,
        ) {
            let mut all = [one.clone(), other.clone()].concat();
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let mut sent = of(&one);
            sent.merge_encoded(&of(&other).encode());
            prop_assert_eq!((&merged, &sent), (&of(&all), &of(&all)));
            all.sort_unstable();
            let rank = (all.len() as u64 * percent).div_ceil(100);
            let exact = all[usize::try_from(rank).unwrap() - 1];
            let exact = f64::from(u32::try_from(exact).unwrap());
            let found = merged.percentile(percent).unwrap();
            prop_assert!((found - exact).abs() <= exact / 32.0, "{} for {}", found, exact);
        }
    }
}
