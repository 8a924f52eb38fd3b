//! The last minutes as a table: a row for each stretch of time, all of one length, and a column for each figure.

use super::{ENTRIES, Metric, MetricCounts};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{keys, redis::Redis},
};
use upstash_rest::{Command, Pairs};

/// The shortest stretch, in seconds: entries come two seconds apart, and shorter ones would look like a comb.
const SHORTEST: u64 = 5;

/// Counters over some minutes. All moments are Unix seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Length of a stretch, in seconds.
    pub width: u64,
    /// When the first stretch begins: a multiple of `width`, so that the borders stay when one asks again.
    pub began: u64,
    /// One for each stretch, oldest first, 61 at most; the last one is not over yet.
    pub stretches: Vec<MetricCounts>,
}

impl Series {
    /// The stretches of the `minutes` before `now`: 60 and the one that is under way, each of a second for each minute, or 5 s.
    fn empty(minutes: u64, now: Timestamp) -> Self {
        let width = minutes.max(SHORTEST);
        let began = now.as_secs().saturating_sub(minutes * 60) / width * width;
        let stretches = (began..=now.as_secs()).step_by(usize::try_from(width).unwrap_or(usize::MAX));
        Self { width, began, stretches: stretches.map(|_| MetricCounts::default()).collect() }
    }

    /// Adds an entry of the moment `at`. One of the future (Redis' clock is ahead of ours) belongs to the present.
    fn add(&mut self, at: u64, fields: &[(String, String)]) {
        let Ok(index) = usize::try_from(at.saturating_sub(self.began) / self.width) else { return };
        let last = self.stretches.len().saturating_sub(1);
        let Some(stretch) = self.stretches.get_mut(index.min(last)) else { return };
        for (name, number) in fields {
            // A field that is not known is another version's.
            let count = Metric::ALL.into_iter().find(|count| count.name() == name);
            if let (Some(count), Ok(number)) = (count, number.parse()) {
                stretch.add(count, number);
            }
        }
    }

    /// When each stretch begins.
    pub fn moments(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.stretches).map(|(index, _): (u64, _)| self.began + index * self.width)
    }

    /// All stretches together.
    #[must_use]
    pub fn totals(&self) -> MetricCounts {
        self.stretches.iter().fold(MetricCounts::default(), |mut totals, stretch| {
            totals.add_all(stretch);
            totals
        })
    }
}

/// Reads the entries of the last `minutes`, the newest first, so that of too many the oldest are missing.
///
/// # Errors
/// [`Error::Redis`].
pub async fn series(redis: &Redis, minutes: u64, now: Timestamp) -> Result<Series, Error> {
    let mut series = Series::empty(minutes, now);
    let since = series.began * 1000;
    let read = Command::read("XREVRANGE").arg(keys::TRAFFIC).arg("+").num(since).arg("COUNT").num(ENTRIES);
    let entries: Vec<(String, Pairs<String, String>)> = redis.run(read).await?;
    for (id, Pairs(fields)) in &entries {
        // `milliseconds-number`.
        let at = id.split('-').next().and_then(|millis| millis.parse::<u64>().ok());
        series.add(at.unwrap_or_default() / 1000, fields);
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_61_rows_at_most_and_none_shorter_than_5_seconds() {
        for (minutes, width) in [(1, 5), (5, 5), (15, 15), (60, 60)] {
            for second in [0, 1, 59, 3_599] {
                let now = Timestamp::from_millis((1_795_000_000 + second) * 1000);
                let series = Series::empty(minutes, now);
                assert_eq!((series.width, series.began % width), (width, 0));
                let rows = minutes * 60 / width;
                let length = series.stretches.len() as u64;
                assert!((rows..=rows + 1).contains(&length), "{minutes} min: {length}");
                let last = series.moments().last().unwrap();
                assert!((last..last + width).contains(&now.as_secs()), "the last one is under way");
            }
        }
    }

    #[test]
    fn entries_of_several_isolates_are_added_up_where_they_belong() {
        let now = Timestamp::from_millis(1_795_000_002_000);
        let mut series = Series::empty(5, now);
        let field = |name: &str, number: &str| (name.to_owned(), number.to_owned());
        series.add(1_795_000_000 - 6, &[field("hit", "1")]);
        series.add(1_795_000_000, &[field("hit", "2"), field("orders", "1")]);
        series.add(1_795_000_004, &[field("hit", "3"), field("unknown", "9"), field("api", "many")]);
        series.add(1_795_000_900, &[field("hit", "4")]);
        let hits: Vec<_> = series.stretches.iter().map(|stretch| stretch.get(Metric::Hit)).collect();
        assert!(hits.ends_with(&[1, 0, 9]), "{hits:?}");
        assert_eq!((series.totals().get(Metric::Hit), series.totals().get(Metric::Order)), (10, 1));
    }
}
