//! The measurements of one isolate in some seconds, or of all isolates in a bucket of a time series.

use super::{
    errors::Errors,
    latency::{Latencies, LatencyKind},
    metric::{Metric, MetricCounts},
};

/// Begins the name of a histogram's field; the name of its kind follows.
const LATENCY: &str = "ms:";
/// Begins the name of an error count's field; status, route and cause follow.
const ERROR: &str = "error:";
/// The name of a field with one of the latest errors.
const LATEST_ERROR: &str = "error";
/// The name of the field with the visitors online.
const ONLINE: &str = "online";
/// Latest errors in one entry.
const LATEST_ERRORS: usize = 5;

/// Counts, latencies and errors in a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficSample {
    pub counts: MetricCounts,
    pub latencies: Latencies,
    pub errors: Errors,
    /// Visitors online at one moment; for several samples, the largest number. Only roll-ups have it.
    pub online: Option<u64>,
}

impl TrafficSample {
    /// The fields of an entry: those that are not empty, with their values. Names the `max_kinds` most frequent kinds of
    /// errors.
    pub fn fields(&self, max_kinds: usize) -> impl Iterator<Item = (String, String)> {
        let counts = self.counts.iter().filter(|(_, count)| *count > 0);
        let counts = counts.map(|(metric, count)| (metric.name().to_owned(), count.to_string()));
        let latencies = self.latencies.iter().map(|(kind, histogram)| (kind.name(), histogram.encode()));
        let latencies = latencies.filter(|(_, text)| !text.is_empty());
        let latencies = latencies.map(|(kind, text)| (format!("{LATENCY}{kind}"), text));
        let errors = self.errors.entry_counts(max_kinds).into_iter();
        let errors = errors.map(|(kind, count)| (format!("{ERROR}{kind}"), count.to_string()));
        let latest = self.errors.latest_fields(LATEST_ERRORS).map(|text| (LATEST_ERROR.to_owned(), text));
        let online = self.online.map(|online| (ONLINE.to_owned(), online.to_string()));
        counts.chain(latencies).chain(errors).chain(latest).chain(online)
    }

    /// Adds a field of an entry. Other versions of edgefront may write fields that this one ignores.
    pub fn add_field(&mut self, name: &str, value: &str) {
        if let Some(name) = name.strip_prefix(LATENCY) {
            let kind = LatencyKind::ALL.into_iter().find(|kind| kind.name() == name);
            if let Some(histogram) = kind.and_then(|kind| self.latencies.of_mut(kind)) {
                histogram.merge_encoded(value);
            }
            return;
        }
        if let Some(kind) = name.strip_prefix(ERROR) {
            return self.errors.add_field(kind, value);
        }
        match name {
            LATEST_ERROR => return self.errors.keep_field(value),
            ONLINE => return self.online = self.online.max(value.parse().ok()),
            _ => {}
        }
        let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name);
        if let (Some(metric), Ok(count)) = (metric, value.parse()) {
            self.counts.add(metric, count);
        }
    }

    /// Adds another sample.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add_all(&other.counts);
        self.latencies.merge(&other.latencies);
        self.errors.merge(&other.errors);
        self.online = self.online.max(other.online);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::errors::ErrorKind, *};
    use crate::ports::time::Timestamp;

    #[test]
    fn a_sample_is_written_and_read_back() {
        let mut sample = TrafficSample::default();
        assert_eq!(sample.fields(1).next(), None);
        sample.counts.add(Metric::Hit, 2);
        sample.latencies.record(LatencyKind::Hit, Duration::ZERO);
        sample.latencies.record(LatencyKind::Origin, Duration::from_millis(120));
        let kind = ErrorKind { status: 404, route: "storefront".to_owned(), cause: "origin".to_owned() };
        sample.errors.record(Timestamp::from_millis(7), kind, "gone");
        sample.online = Some(3);
        let fields: Vec<_> = sample.fields(1).collect();
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["hit", "ms:hit", "ms:origin", "error:404 storefront origin", "error", "online"]);
        let mut read = TrafficSample::default();
        for (name, value) in &fields {
            read.add_field(name, value);
        }
        read.add_field("ms:unknown", "1 1:1");
        read.add_field("unknown", "1");
        read.add_field("api", "many");
        assert_eq!(read, sample);
        read.merge(&sample);
        assert_eq!(read.counts.get(Metric::Hit), 4);
    }
}
