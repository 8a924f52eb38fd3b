//! The result of a simulation, per second.

use std::time::Duration;

use crate::{
    costs,
    scenario::{Layout, Scenario},
    tally::Tally,
    usage::Usage,
    visitor::TraceEntry,
};

/// Seconds of a month of 30 days.
const MONTH: f64 = 2_592_000.0;
const BYTES_OF_GIGABYTE: f64 = 1e9;

/// See the [module](self).
pub struct Summary {
    pub scenario: Scenario,
    pub measured: Duration,
    pub tally: Tally,
    pub usage: Usage,
    /// Most commands in a second.
    pub peak: f64,
    /// Bytes of pages in the fullest isolate.
    pub memory: usize,
    /// Isolates that exist, simulated or not.
    pub isolates: f64,
    /// Pages in Redis, and their bytes.
    pub pages: usize,
    pub page_bytes: usize,
    /// The simulated actions, if all visitors are in one place.
    pub trace: Vec<TraceEntry>,
}

impl Summary {
    fn per_second(&self, count: f64) -> f64 {
        count / self.measured.as_secs_f64()
    }

    #[must_use]
    pub fn requests(&self) -> f64 {
        self.per_second(self.tally.requests)
    }

    #[must_use]
    pub fn redis_requests(&self) -> f64 {
        self.per_second(self.usage.requests)
    }

    #[must_use]
    pub fn commands(&self) -> f64 {
        self.per_second(self.usage.commands)
    }

    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.per_second(self.usage.bytes)
    }

    /// The busiest key, and its commands a second.
    #[must_use]
    pub fn hottest(&self) -> (String, f64) {
        let (key, commands) = self.usage.hottest();
        (key, self.per_second(commands))
    }

    /// Requests to the origin a second.
    #[must_use]
    pub fn renders(&self) -> f64 {
        self.per_second(self.tally.renders)
    }

    /// Dollars a month: commands, traffic of Redis, requests to the Worker.
    #[must_use]
    pub fn dollars(&self) -> f64 {
        // Each region executes every write.
        let copies = if self.scenario.layout == Layout::Regions { crate::cities::REPLICAS.len() } else { 0 };
        let copies = f64::from(u32::try_from(copies).unwrap_or_default());
        let commands = (self.commands() + copies * self.per_second(self.usage.writes)) * MONTH + costs::CRONS_A_MONTH;
        let gigabytes = (self.bytes() * MONTH / BYTES_OF_GIGABYTE - costs::FREE_GIGABYTES).max(0.0);
        commands * costs::DOLLARS_PER_COMMAND
            + gigabytes * costs::DOLLARS_PER_GIGABYTE
            + self.requests() * MONTH * costs::DOLLARS_PER_REQUEST
    }
}
