//! Traffic: origins of responses, actions of visitors, their cost in Redis, latencies, and errors.
//!
//! An isolate measures in memory. After a response it writes its sample as one entry of the stream `traffic:`, if its
//! last entry is older than `TRAFFIC_INTERVAL`. So a request costs at most one more command, and a thousand requests a
//! second cost half a command a second. Redis stamps each entry with its own clock, because the isolates' clocks
//! differ.
//!
//! Counts since the last entry wait for the isolate's next request. If the platform evicts the isolate before that, it
//! loses at most the last two seconds of a burst. Counts of a failed write go into the next entry; if only the reply
//! was lost, they count twice.
//!
//! The platform's clock advances only at I/O. So a latency is the time that a response waited for Redis, the origin,
//! the location's cache or the home tier; CPU time is not part of it. A page from the isolate's memory takes 0 ms.
//!
//! - [`metric`]: the counters and their names.
//! - [`latency`]: the latencies and their names.
//! - [`errors`]: error responses by status, route and cause, and the latest ones.
//! - [`sample`]: the measurements in a period, and their form in an entry.
//! - [`stream`]: reads entries.
//! - [`roll_up`]: sums entries up by minute, by hour and in total.
//! - [`series`]: some minutes, a day or a week as a time series.

mod errors;
mod latency;
mod metric;
mod roll_up;
mod sample;
mod series;
mod stream;

use std::{
    cell::{Cell, RefCell},
    fmt::Write,
    rc::Rc,
    time::Duration,
};

use errors::MAX_ENTRY_KINDS;
pub use errors::{ErrorEvent, ErrorKind, Errors};
pub use latency::{Latencies, LatencyKind};
pub use metric::{Metric, MetricCounts};
pub use roll_up::{RollUpReport, read_totals, roll_up};
pub use sample::TrafficSample;
pub use series::{TrafficSeries, read_series};

use crate::{
    carts::CartWriteOutcome,
    ports::{answer::BackgroundTask, time::Timestamp},
    ranking::activity::pace::Pace,
    schema::{keys, redis::Redis},
};
use upstash_rest::{Attribution, Command, Meter, Totals};

/// Entries in the stream: one hour of 5 isolates that are always busy, about 4 MB. More isolates cover less time.
const MAX_ENTRIES: usize = 10_000;
/// The deadline of an entry in a request of its own.
const ENTRY_DEADLINE: Duration = Duration::from_secs(5);

/// The sample of this isolate since its last entry.
pub struct TrafficCounters {
    /// `TRAFFIC_INTERVAL`. Zero disables the counters.
    interval: Duration,
    sample: RefCell<TrafficSample>,
    /// The moment of the last entry. None in a new isolate: its first request writes an entry.
    written: Cell<Option<Timestamp>>,
}

impl TrafficCounters {
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, sample: RefCell::default(), written: Cell::default() }
    }

    /// Adds one to `metric`.
    pub fn count(&self, metric: Metric) {
        self.sample.borrow_mut().counts.add(metric, 1);
    }

    pub fn record(&self, kind: LatencyKind, duration: Duration) {
        self.sample.borrow_mut().latencies.record(kind, duration);
    }

    pub fn record_error(&self, at: Timestamp, kind: ErrorKind, reason: &str) {
        self.sample.borrow_mut().errors.record(at, kind, reason);
    }

    /// Counts the additions of a cart write, and the start of a cart.
    pub fn count_cart_write(&self, write: &CartWriteOutcome) {
        let counts = &mut self.sample.borrow_mut().counts;
        counts.add(Metric::CartAddition, write.additions as u64);
        counts.add(Metric::CartStart, write.starts_cart.into());
    }

    /// Returns whether counts wait for an entry.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        let sample = self.sample.borrow();
        !(self.interval.is_zero() || sample.counts.is_empty() && sample.errors.counts().is_empty())
    }

    /// Takes the sample as lines for another isolate.
    #[must_use]
    pub fn take_relay_lines(&self) -> String {
        // Each batch records a latency. If latencies alone made a batch, each batch would cause the next one.
        if !self.has_counts() {
            return String::new();
        }
        let mut lines = String::new();
        for (name, value) in self.sample.take().fields(MAX_ENTRY_KINDS) {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "count\t{name}\t{value}");
        }
        lines
    }

    /// Adds a line of another isolate's sample. Returns whether `line` is one.
    pub fn receive(&self, line: &str) -> bool {
        let Some((name, value)) = line.strip_prefix("count\t").and_then(|rest| rest.split_once('\t')) else {
            return false;
        };
        self.sample.borrow_mut().add_field(name, value);
        true
    }

    /// A task that writes an entry. None if no entry is due: at a reduced `pace`, entries are less frequent.
    #[must_use]
    pub fn flush(self: &Rc<Self>, redis: &Rc<Redis>, pace: &Pace, now: Timestamp) -> Option<BackgroundTask> {
        let meter = redis.meter();
        let mut sample = self.take_due_sample(&meter, pace, now)?;
        sample.latencies.merge_one(LatencyKind::Redis, &redis.take_latencies());
        // At a reduced pace, an entry shares no pipeline with the calls that visitors wait for.
        let redis = if pace.level() == 0 { redis.clone() } else { Rc::new(redis.with_deadline(ENTRY_DEADLINE)) };
        let counters = self.clone();
        // The entry includes its own cost. If the meter counted it again, each entry would cause the next one.
        Some(Box::pin(meter.attribute(Attribution::Uncounted, async move {
            if let Err(error) = redis.run::<()>(entry_command(&sample)).await {
                log::warn!("an entry of traffic counts was not written and joins the next one: {error}");
                counters.sample.borrow_mut().merge(&sample);
            }
        })))
    }

    /// Takes the sample for an entry that is due now: this isolate's, the meter's, and the cost of the entry itself.
    /// Latencies alone make no entry due.
    fn take_due_sample(&self, meter: &Meter, pace: &Pace, now: Timestamp) -> Option<TrafficSample> {
        let interval = pace.counter_interval(self.interval);
        let is_early = self.written.get().is_some_and(|written| now.is_near(interval, written));
        if self.interval.is_zero() || is_early {
            return None;
        }
        let Totals { foreground, background } = meter.take();
        let mut sample = self.sample.borrow_mut();
        let has_errors = !sample.errors.counts().is_empty();
        let counts = &mut sample.counts;
        counts.add(Metric::RedisRequests, foreground.requests);
        counts.add(Metric::RedisCommands, foreground.commands);
        counts.add(Metric::BackgroundRequests, background.requests);
        counts.add(Metric::BackgroundCommands, background.commands);
        counts.add(Metric::RedisFailures, foreground.failures + background.failures);
        if counts.is_empty() && !has_errors {
            return None;
        }
        // Set before the entry is sent, so that concurrent responses do not write another one.
        self.written.set(Some(now));
        counts.add(Metric::ReducedPace, (pace.level() > 0).into());
        counts.add(Metric::BackgroundRequests, 1);
        counts.add(Metric::BackgroundCommands, 1);
        Some(std::mem::take(&mut *sample))
    }
}

fn entry_command(sample: &TrafficSample) -> Command {
    let entry = Command::write("XADD").arg(keys::TRAFFIC).arg("MAXLEN").arg("~").num(MAX_ENTRIES).arg("*");
    sample.fields(MAX_ENTRY_KINDS).fold(entry, |entry, (name, value)| entry.arg(name).arg(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    #[test]
    fn the_first_entry_is_due_at_once_and_the_next_after_the_interval() {
        let (traffic, meter) = (TrafficCounters::new(Duration::from_secs(2)), Meter::default());
        assert_eq!(traffic.take_due_sample(&meter, &Pace::default(), NOON), None, "nothing was counted");
        traffic.count(Metric::Hit);
        assert!(traffic.take_due_sample(&meter, &Pace::default(), NOON).is_some());
        traffic.count(Metric::Hit);
        traffic.count(Metric::Hit);
        assert_eq!(traffic.take_due_sample(&meter, &Pace::default(), NOON + Duration::from_millis(1_999)), None);
        let counts = traffic.take_due_sample(&meter, &Pace::default(), NOON + Duration::from_secs(2)).unwrap().counts;
        assert_eq!((counts.get(Metric::Hit), counts.get(Metric::BackgroundCommands)), (2, 1));
        assert_eq!(traffic.take_due_sample(&meter, &Pace::default(), NOON + Duration::from_mins(1)), None);
        traffic.count(Metric::Hit);
        assert!(traffic.take_due_sample(&meter, &Pace::default(), NOON).is_some(), "the clock was set back");
    }

    #[test]
    fn a_sample_reaches_another_isolate() {
        let [edge, home] = [0, 1].map(|_| TrafficCounters::new(Duration::from_secs(2)));
        edge.count(Metric::Hit);
        edge.count(Metric::View);
        edge.count(Metric::View);
        edge.record(LatencyKind::Hit, Duration::from_millis(3));
        let lines = edge.take_relay_lines();
        assert!(!edge.has_counts() && lines.lines().all(|line| home.receive(line)), "{lines}");
        let TrafficSample { counts, latencies, .. } = home.sample.take();
        assert_eq!((counts.get(Metric::Hit), counts.get(Metric::View)), (1, 2));
        let hits = latencies.iter().find(|(kind, _)| *kind == LatencyKind::Hit).unwrap().1;
        assert_eq!((hits.count(), hits.sum()), (1, 3));
        assert!(!home.receive("views\tmug\t\t1"));
    }

    #[test]
    fn an_interval_of_zero_disables_the_counters() {
        let (traffic, meter) = (TrafficCounters::new(Duration::ZERO), Meter::default());
        traffic.count(Metric::Hit);
        assert_eq!(traffic.take_due_sample(&meter, &Pace::default(), NOON), None);
    }
}
