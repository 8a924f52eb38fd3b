//! The measurements in the text format of Prometheus, version 0.0.4.
//!
//! Counters and histograms are the sums since the first roll-up. They grow while the crons run. If `traffic:` loses entries
//! before a cron has added them up, the counters may fall; Prometheus takes that for a restart. The stream keeps 10,000
//! entries: five minutes of 60 busy isolates.

use std::fmt::{Display, Write};

use super::{
    storage::StorageStats,
    traffic::{LatencyKind, Metric, TrafficSample},
};
use crate::ports::histogram::Histogram;

/// The media type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The origins of responses: one counter with the name as its label.
const RESPONSES: [Metric; 13] = [
    Metric::Hit,
    Metric::Stale,
    Metric::Stored,
    Metric::Miss,
    Metric::Unpopular,
    Metric::NoItem,
    Metric::Dynamic,
    Metric::Parameters,
    Metric::Method,
    Metric::Header,
    Metric::RedisDown,
    Metric::Api,
    Metric::Failed,
];

/// A counter: its name, its help, and its metrics with their labels.
type CounterRow = (&'static str, &'static str, &'static [(&'static str, Metric)]);

/// The other counters.
const COUNTERS: [CounterRow; 10] = [
    ("item_views", "Views of item pages.", &[("", Metric::View)]),
    ("cart_additions", "Additions to carts.", &[("", Metric::CartAddition)]),
    ("carts_started", "Additions to empty carts.", &[("", Metric::CartStart)]),
    ("orders", "Orders; each order id counts once.", &[("", Metric::Order)]),
    ("location_cache_hits", "Pages from the location's cache.", &[("", Metric::LocationHit)]),
    (
        "location_cache_failures",
        "Requests to the location's cache without an answer.",
        &[("", Metric::LocationFailure)],
    ),
    (
        "redis_requests",
        "HTTP requests to Redis, before or after a response.",
        &[("phase=\"foreground\"", Metric::RedisRequests), ("phase=\"background\"", Metric::BackgroundRequests)],
    ),
    (
        "redis_commands",
        "Commands in these requests; a script counts as one.",
        &[("phase=\"foreground\"", Metric::RedisCommands), ("phase=\"background\"", Metric::BackgroundCommands)],
    ),
    ("redis_failures", "Requests to Redis without a reply.", &[("", Metric::RedisFailures)]),
    (
        "reduced_pace_entries",
        "Entries of counters that an isolate wrote at a reduced pace, because Redis was overloaded.",
        &[("", Metric::ReducedPace)],
    ),
];

/// The last exponent of two in the histograms' limits: 2¹⁴ ms are 16 s, longer than any request of edgefront.
const LAST_EXPONENT: u32 = 14;

/// Text that grows by one family of metrics after another.
#[derive(Default)]
pub struct Exposition(String);

impl Exposition {
    /// Writes all counters and histograms.
    pub fn add_traffic(&mut self, totals: &TrafficSample) {
        self.begin("responses_total", "counter", "Responses to visitors by their source.");
        for metric in RESPONSES {
            self.value("responses_total", format_args!("source=\"{}\"", metric.name()), totals.counts.get(metric));
        }
        for (name, help, metrics) in COUNTERS {
            let name = format!("{name}_total");
            self.begin(&name, "counter", help);
            for (label, metric) in metrics {
                self.value(&name, label, totals.counts.get(*metric));
            }
        }
        self.begin("errors_total", "counter", "Responses with status 4xx and 5xx by status, route and cause.");
        for (kind, count) in totals.errors.counts() {
            let (status, [route, cause]) = (kind.status, [&kind.route, &kind.cause].map(|text| escape(text)));
            let labels = format_args!("status=\"{status}\",route=\"{route}\",cause=\"{cause}\"");
            self.value("errors_total", labels, count);
        }
        let responses = [LatencyKind::Hit, LatencyKind::Render, LatencyKind::Api];
        let help = "Time that responses waited, until their head. CPU time is not part of it.";
        self.histograms(("response_duration_seconds", help), ("kind", responses), totals);
        let upstreams = [LatencyKind::Redis, LatencyKind::Origin, LatencyKind::Home];
        let help = "Duration of requests to Redis, the origin and the home tier.";
        self.histograms(("upstream_duration_seconds", help), ("upstream", upstreams), totals);
    }

    /// Writes the figures of Redis, and the limits of sessions and of stored pages.
    pub fn add_storage(&mut self, stats: &StorageStats, session_limit: u64, page_limit: u64) {
        for (name, help, value) in [
            ("sessions", "Sessions.", stats.sessions),
            ("sessions_limit", "The configured limit of sessions.", session_limit),
            ("visitors_online", "Sessions seen within the last five minutes.", stats.online),
            ("ranked_items", "Items in the ranking.", stats.ranked_items),
            ("scheduled_rows", "Rows with a schedule.", stats.scheduled_rows),
            ("abandoned_carts", "Recorded carts that ended with their session.", stats.abandoned_carts),
            ("stored_page_bytes", "Bytes of all stored pages.", stats.page_bytes),
            ("stored_page_bytes_limit", "The configured limit of these bytes.", page_limit),
            ("redis_keys", "Keys in the database.", stats.keys),
        ] {
            self.gauge(name, help, [("", value)]);
        }
    }

    /// Writes a gauge: its values, each with its label. Without values, nothing.
    pub fn gauge<L: Display, V: Display>(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (L, V)>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.begin(name, "gauge", help);
        }
        for (label, value) in values {
            self.value(name, label, value);
        }
    }

    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }

    fn histograms(
        &mut self,
        (name, help): (&str, &str),
        (label, kinds): (&str, [LatencyKind; 3]),
        totals: &TrafficSample,
    ) {
        self.begin(name, "histogram", help);
        for kind in kinds {
            self.histogram(name, &format!("{label}=\"{}\"", kind.name()), totals.latencies.of(kind));
        }
    }

    fn histogram(&mut self, name: &str, label: &str, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut add = |limit: &dyn Display, count| self.value(&bucket, format_args!("{label},le=\"{limit}\""), count);
        for exponent in 0..=LAST_EXPONENT {
            // 2ⁿ, and the middle to the next one: lower limits of buckets. Durations are whole milliseconds, rounded down.
            let power = 1_u64 << exponent;
            for limit in [power, power + power / 2].into_iter().take(if exponent == 0 { 1 } else { 2 }) {
                add(&seconds(limit), histogram.count_below(limit));
            }
        }
        add(&"+Inf", histogram.count());
        self.value(&format!("{name}_sum"), label, seconds(histogram.sum()));
        self.value(&format!("{name}_count"), label, histogram.count());
    }

    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP edgefront_{name} {help}\n# TYPE edgefront_{name} {kind}\n");
    }

    fn value(&mut self, name: &str, labels: impl Display, value: impl Display) {
        let labels = labels.to_string();
        let _ = if labels.is_empty() {
            writeln!(self.0, "edgefront_{name} {value}")
        } else {
            writeln!(self.0, "edgefront_{name}{{{labels}}} {value}")
        };
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2⁵³")]
const fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// A label's value, escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_count_is_exported_once() {
        let mut totals = TrafficSample::default();
        for (index, metric) in (1_000..).zip(Metric::ALL) {
            totals.counts.add(metric, index);
        }
        let mut exposition = Exposition::default();
        exposition.add_traffic(&totals);
        let text = exposition.into_text();
        for (index, metric) in (1_000..).zip(Metric::ALL) {
            let end = format!(" {index}");
            assert_eq!(text.lines().filter(|line| line.ends_with(&end)).count(), 1, "{}", metric.name());
        }
    }

    #[test]
    fn a_histogram_counts_durations_up_to_each_limit() {
        let mut totals = TrafficSample::default();
        for millis in [0, 47, 48, 60_000] {
            totals.latencies.record(LatencyKind::Api, Duration::from_millis(millis));
        }
        let mut exposition = Exposition::default();
        exposition.add_traffic(&totals);
        let text = exposition.into_text();
        let name = "edgefront_response_duration_seconds";
        for (limit, count) in [("0.001", 1), ("0.032", 1), ("0.048", 2), ("0.064", 3), ("24.576", 3), ("+Inf", 4)] {
            let line = format!("{name}_bucket{{kind=\"api\",le=\"{limit}\"}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(text.contains(&format!("{name}_sum{{kind=\"api\"}} 60.095\n")), "{text}");
    }

    #[test]
    fn a_label_is_escaped() {
        assert_eq!(escape("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }
}
