//! Traffic counters: the sources of responses, visitors' actions, and the cost in Redis.
//!
//! An isolate counts in memory and writes what it counted as one entry of the stream `traffic:`, behind an answer, once its
//! last entry is older than `TRAFFIC_INTERVAL`. So a request costs one more command at most, and a thousand a second cost
//! half a command a second. An entry is stamped by Redis' own clock, since isolates have clocks of their own.
//!
//! What an isolate counted after its last entry waits for its next request, and is lost if it is evicted before that: the last
//! two seconds of a burst, at most. A write that fails is kept for the next one; if only its reply was lost, it counts twice.
//!
//! - [`count`]: what is counted, and under which name.
//! - [`series`]: the entries of some minutes, as a table.

mod count;
mod series;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

pub use count::{Metric, MetricCounts};
pub use series::{Series, series};

use crate::{
    App,
    ports::{answer::BackgroundTask, time::Timestamp},
    schema::keys,
};
use upstash_rest::{Attribution, Command, Meter, Totals};

/// Entries of the stream: an hour of 5 isolates that are always busy, in some 2 MB. More isolates have less of the past.
const ENTRIES: u32 = 10_000;

/// The isolate's counters since its last entry.
pub struct TrafficCounters {
    /// Zero: nothing is counted.
    interval: Duration,
    counts: RefCell<MetricCounts>,
    /// When the last entry was made; None in a new isolate, whose first request makes one.
    written: Cell<Option<Timestamp>>,
}

impl TrafficCounters {
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, counts: RefCell::default(), written: Cell::default() }
    }

    /// Counts one of `count`.
    pub fn count(&self, count: Metric) {
        self.counts.borrow_mut().add(count, 1);
    }

    /// Counts an addition to a cart, which is begun by it if the cart now holds nothing but the `added` pieces.
    pub fn added(&self, cart: &crate::carts::Cart, added: u32) {
        self.count(Metric::Addition);
        if let [line] = cart.lines.as_slice()
            && line.quantity == added
        {
            self.count(Metric::Cart);
        }
    }

    /// Counts an order, the first time that its id is seen.
    pub fn order(&self) {
        self.count(Metric::Order);
    }

    /// Takes what is to be written now, if anything is: what was counted, what `meter` counted, and this entry's own cost.
    fn take(&self, meter: &Meter, now: Timestamp) -> Option<MetricCounts> {
        let is_early = self.written.get().is_some_and(|written| now.since(written) < self.interval);
        if self.interval.is_zero() || is_early {
            return None;
        }
        let Totals { foreground, background } = meter.take();
        let mut counts = self.counts.take();
        counts.add(Metric::Requests, foreground.requests);
        counts.add(Metric::Commands, foreground.commands);
        counts.add(Metric::LaterRequests, background.requests);
        counts.add(Metric::LaterCommands, background.commands);
        counts.add(Metric::Failures, foreground.failures + background.failures);
        if counts.is_empty() {
            return None;
        }
        // Set before the entry is sent: the answers of that while must not write, too.
        self.written.set(Some(now));
        counts.add(Metric::LaterRequests, 1);
        counts.add(Metric::LaterCommands, 1);
        Some(counts)
    }
}

/// The work that writes what was counted, if an entry is due.
#[must_use]
pub fn flush(app: &Rc<App>, now: Timestamp) -> Option<BackgroundTask> {
    let meter = app.redis.meter();
    let counts = app.traffic.take(&meter, now)?;
    let app = app.clone();
    // It has counted itself already: counted once more, it would be reason enough for the next entry, and so on.
    Some(Box::pin(meter.attribute(Attribution::Uncounted, async move {
        if let Err(error) = app.redis.run::<()>(entry(&counts)).await {
            log::warn!("traffic: {error}");
            app.traffic.counts.borrow_mut().add_all(&counts);
        }
    })))
}

fn entry(counts: &MetricCounts) -> Command {
    let entry = Command::write("XADD").arg(keys::TRAFFIC).arg("MAXLEN").arg("~").num(ENTRIES).arg("*");
    counts
        .iter()
        .filter(|(_, number)| *number > 0)
        .fold(entry, |entry, (count, number)| entry.arg(count.name()).num(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    #[test]
    fn an_entry_is_due_at_once_and_then_once_in_an_interval() {
        let (traffic, meter) = (TrafficCounters::new(Duration::from_secs(2)), Meter::default());
        assert_eq!(traffic.take(&meter, NOON), None, "nothing happened");
        traffic.count(Metric::Hit);
        assert!(traffic.take(&meter, NOON).is_some());
        traffic.count(Metric::Hit);
        traffic.count(Metric::Hit);
        assert_eq!(traffic.take(&meter, NOON + Duration::from_millis(1_999)), None);
        let counts = traffic.take(&meter, NOON + Duration::from_secs(2)).unwrap();
        assert_eq!((counts.get(Metric::Hit), counts.get(Metric::LaterCommands)), (2, 1));
        assert_eq!(traffic.take(&meter, NOON + Duration::from_mins(1)), None);
    }

    #[test]
    fn without_an_interval_nothing_is_written() {
        let (traffic, meter) = (TrafficCounters::new(Duration::ZERO), Meter::default());
        traffic.count(Metric::Hit);
        assert_eq!(traffic.take(&meter, NOON), None);
    }
}
