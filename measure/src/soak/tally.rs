//! Counts the events of a run minute by minute, and records the violations.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use edgefront_models::histories::clients::Summary;
use http::StatusCode;

/// After the kill of the Worker, a page without a response is no violation for this time. A new Worker starts within a
/// second on a busy machine.
const WORKER_DOWNTIME: Duration = Duration::from_secs(10);

/// A kind of result that must not occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A cart differs from the accepted writes.
    Cart,
    /// A session belongs to another user, or is alive after its end.
    Session,
    /// A write got an unexpected status, or neither an acceptance nor a rejection for a minute.
    Write,
    /// A read got an unexpected status.
    Read,
    /// A page was an error, incomplete, or missing.
    Page,
    /// The history of a shared cart or a flash sale is not linearizable.
    History,
}

/// The events of one minute.
#[derive(Default)]
pub struct Minute {
    pub pages: u64,
    /// Pages with status 5xx.
    pub page_errors: u64,
    pub slowest_page: Duration,
    pub reads: u64,
    /// Reads with status 503 or without a response.
    pub reads_refused: u64,
    pub writes_accepted: u64,
    pub writes_retried: u64,
    pub jobs: u64,
    pub jobs_failed: u64,
    pub redis_kills: u64,
    pub worker_kills: u64,
    /// Samples of the Worker's memory, MB.
    pub memory: Vec<f64>,
}

/// All events of a run.
pub struct Tally {
    started: Instant,
    /// By the number of the minute, from 1.
    pub minutes: BTreeMap<u64, Minute>,
    /// Each with a description.
    pub violations: Vec<(Violation, String)>,
    /// The latest kill of the Worker.
    worker_killed: Option<Instant>,
    /// Pages without a response because the Worker had just been killed.
    pub unanswered: u64,
    /// The check of the clients' histories, after the run.
    pub histories: Option<Summary>,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            minutes: BTreeMap::new(),
            violations: Vec::new(),
            worker_killed: None,
            unanswered: 0,
            histories: None,
        }
    }

    fn minute(&mut self) -> &mut Minute {
        self.minutes.entry(self.started.elapsed().as_secs() / 60 + 1).or_default()
    }

    /// Counts a page. `status` is `None` without a response.
    pub fn page(&mut self, status: Option<StatusCode>, is_complete: bool, duration: Duration) {
        let Some(status) = status else {
            if self.worker_killed.is_some_and(|at| at.elapsed() < WORKER_DOWNTIME) {
                self.unanswered += 1;
            } else {
                self.violation(Violation::Page, "no response");
            }
            return;
        };
        let minute = self.minute();
        minute.pages += 1;
        minute.slowest_page = minute.slowest_page.max(duration);
        minute.page_errors += u64::from(status.is_server_error());
        if status != StatusCode::OK || !is_complete {
            self.violation(Violation::Page, &format!("{status}{}", if is_complete { "" } else { ", incomplete" }));
        }
    }

    /// Counts a read. `status` is `None` without a response. While Redis is down, a read is 503. No row is scheduled, so
    /// rows are 404.
    pub fn read(&mut self, path: &str, status: Option<StatusCode>) {
        let is_refused = status.is_none_or(|status| status == StatusCode::SERVICE_UNAVAILABLE);
        let minute = self.minute();
        minute.reads += 1;
        minute.reads_refused += u64::from(is_refused);
        let is_missing_row = status == Some(StatusCode::NOT_FOUND) && path.starts_with("/rows/");
        if let Some(status) = status
            && !(is_refused || is_missing_row || status.is_success())
        {
            self.violation(Violation::Read, &format!("{path}: {status}"));
        }
    }

    pub fn write_accepted(&mut self) {
        self.minute().writes_accepted += 1;
    }

    pub fn write_retried(&mut self) {
        self.minute().writes_retried += 1;
    }

    pub fn job(&mut self, has_succeeded: bool) {
        let minute = self.minute();
        minute.jobs += 1;
        minute.jobs_failed += u64::from(!has_succeeded);
    }

    pub fn redis_killed(&mut self) {
        self.minute().redis_kills += 1;
    }

    pub fn worker_killed(&mut self) {
        self.worker_killed = Some(Instant::now());
        self.minute().worker_kills += 1;
    }

    /// Adds a sample of the Worker's memory; `None` if it is unknown.
    pub fn memory(&mut self, megabytes: Option<f64>) {
        self.minute().memory.extend(megabytes);
    }

    pub fn record_histories(&mut self, summary: Summary) {
        for object in &summary.violated {
            self.violation(Violation::History, &format!("the history of {object} is not linearizable"));
        }
        self.histories = Some(summary);
    }

    pub fn violation(&mut self, violation: Violation, details: &str) {
        let seconds = self.started.elapsed().as_secs();
        self.violations.push((violation, format!("{violation:?}, after {seconds} s: {details}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_page_is_a_violation_unless_the_worker_was_just_killed() {
        let mut tally = Tally::new();
        tally.page(None, false, Duration::ZERO);
        assert_eq!((tally.violations.len(), tally.unanswered), (1, 0));
        tally.worker_killed();
        tally.page(None, false, Duration::ZERO);
        assert_eq!((tally.violations.len(), tally.unanswered), (1, 1));
    }

    #[test]
    fn a_read_is_a_success_or_503_and_an_unscheduled_row_404() {
        let mut tally = Tally::new();
        for status in [None, Some(StatusCode::OK), Some(StatusCode::SERVICE_UNAVAILABLE)] {
            tally.read("/cart", status);
        }
        tally.read("/rows/item-1", Some(StatusCode::NOT_FOUND));
        assert_eq!(tally.violations, []);
        for status in [StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY] {
            tally.read("/cart", Some(status));
        }
        tally.read("/rows/item-1", Some(StatusCode::BAD_GATEWAY));
        assert_eq!(tally.violations.len(), 4);
        assert_eq!(tally.minutes.values().map(|minute| minute.reads_refused).sum::<u64>(), 2);
    }

    #[test]
    fn a_page_must_be_complete_and_have_status_200() {
        let mut tally = Tally::new();
        tally.page(Some(StatusCode::OK), true, Duration::ZERO);
        assert_eq!(tally.violations, []);
        tally.page(Some(StatusCode::OK), false, Duration::ZERO);
        tally.page(Some(StatusCode::SERVICE_UNAVAILABLE), true, Duration::ZERO);
        assert_eq!(tally.violations.len(), 2);
        assert_eq!(tally.minutes.values().map(|minute| minute.page_errors).sum::<u64>(), 1);
    }
}
