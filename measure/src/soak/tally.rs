//! What happened, minute by minute, and whether it is as it should be.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    time::{Duration, Instant},
};

use http::StatusCode;

use crate::bench::{
    statistics,
    table::{Table, figure, figure_or_dash},
};
use xtask::failure::Failure;

/// What memory the Worker may have at the end, MB, all of its process. Where nobody limits V8 it collects late: 46,000 pages at once
/// brought the process to 406 MB, and 22,000 more to 407. What is lost with each request comes to more than this sooner or later.
const MOST_MEMORY: f64 = 512.0;
/// Looks at the memory that say something: half a minute's.
const LOOKS: usize = 30;
/// How many things that went wrong are told in full.
const TOLD: usize = 10;

/// What must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A cart has something else than what was accepted.
    Cart,
    /// A session is somebody else's, or answers after its end.
    Session,
    /// A write was neither accepted nor refused for a while.
    Write,
    /// A page was an error, cut off, or did not come.
    Page,
}

#[derive(Default)]
struct Minute {
    pages: u64,
    /// 5xx.
    page_errors: u64,
    slowest: Duration,
    reads: u64,
    /// 503 or no answer.
    reads_refused: u64,
    accepted: u64,
    tried_again: u64,
    jobs: u64,
    jobs_failed: u64,
    redis_killed: u64,
    worker_killed: u64,
    /// Of the Worker, MB.
    memory: Vec<f64>,
}

/// All that happened.
pub struct Tally {
    started: Instant,
    /// From 1.
    minutes: BTreeMap<u64, Minute>,
    wrong: Vec<(Wrong, String)>,
    /// When the Worker was killed: nobody answers then.
    worker_killed: Option<Instant>,
    /// Pages that nobody answered, since the Worker was just killed.
    unanswered: u64,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            minutes: BTreeMap::new(),
            wrong: Vec::new(),
            worker_killed: None,
            unanswered: 0,
        }
    }

    fn minute(&mut self) -> &mut Minute {
        self.minutes.entry(self.started.elapsed().as_secs() / 60 + 1).or_default()
    }

    pub fn page(&mut self, status: Option<StatusCode>, is_whole: bool, took: Duration) {
        let Some(status) = status else {
            // Until a new one runs: its start takes a second on a busy machine.
            if self.worker_killed.is_some_and(|at| at.elapsed() < Duration::from_secs(10)) {
                self.unanswered += 1;
            } else {
                self.wrong(Wrong::Page, "no answer");
            }
            return;
        };
        let minute = self.minute();
        minute.pages += 1;
        minute.slowest = minute.slowest.max(took);
        if status.is_server_error() {
            minute.page_errors += 1;
        }
        if status != StatusCode::OK || !is_whole {
            self.wrong(Wrong::Page, &format!("{status}{}", if is_whole { "" } else { ", cut off" }));
        }
    }

    pub fn read(&mut self, status: Option<StatusCode>) {
        let minute = self.minute();
        minute.reads += 1;
        minute.reads_refused += u64::from(status.is_none_or(|status| status == StatusCode::SERVICE_UNAVAILABLE));
    }

    pub fn accepted(&mut self) {
        self.minute().accepted += 1;
    }

    pub fn tried_again(&mut self) {
        self.minute().tried_again += 1;
    }

    pub fn job(&mut self, ran: bool) {
        let minute = self.minute();
        minute.jobs += 1;
        minute.jobs_failed += u64::from(!ran);
    }

    pub fn redis_killed(&mut self) {
        self.minute().redis_killed += 1;
    }

    pub fn worker_killed(&mut self) {
        self.worker_killed = Some(Instant::now());
        self.minute().worker_killed += 1;
    }

    pub fn memory(&mut self, megabytes: Option<f64>) {
        self.minute().memory.extend(megabytes);
    }

    pub fn wrong(&mut self, kind: Wrong, what: &str) {
        let at = self.started.elapsed().as_secs();
        self.wrong.push((kind, format!("{kind:?} at {at} s: {what}")));
    }

    /// The Worker's memory when it was warm, and at the end, MB: medians of a fifth of the time each. None if that is not known, or the run was too short to say.
    pub fn growth(&self) -> Option<(f64, f64)> {
        let looks: Vec<f64> = self.minutes.values().flat_map(|minute| &minute.memory).copied().collect();
        let fifth = looks.len() / 5;
        if fifth < LOOKS {
            return None;
        }
        let (warm, end) = (looks.get(2 * fifth..3 * fifth)?, looks.get(looks.len() - fifth..)?);
        Some((statistics::median(warm.to_vec())?, statistics::median(end.to_vec())?))
    }

    /// # Errors
    /// With what did not hold.
    pub fn verdict(&self) -> Result<(), Failure> {
        let mut text = String::new();
        for (_, what) in self.wrong.iter().take(TOLD) {
            let _ = writeln!(text, "{what}");
        }
        if self.wrong.len() > TOLD {
            let _ = writeln!(text, "and {} more", self.wrong.len() - TOLD);
        }
        if let Some((warm, end)) = self.growth()
            && end > MOST_MEMORY
        {
            let _ = writeln!(text, "the Worker's memory grew from {warm:.0} to {end:.0} MB, more than {MOST_MEMORY}");
        }
        if text.is_empty() { Ok(()) } else { Err(Failure::new(text.trim(), "the Worker's log is in target/soak")) }
    }

    fn total(&self, of: impl Fn(&Minute) -> u64) -> u64 {
        self.minutes.values().map(of).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "minute",
            "pages",
            "of them 5xx",
            "slowest ms",
            "writes accepted",
            "tried again",
            "reads",
            "refused",
            "Redis killed",
            "Worker killed",
            "memory MB",
        ]);
        for (number, minute) in &self.minutes {
            table.row([
                number.to_string(),
                minute.pages.to_string(),
                minute.page_errors.to_string(),
                figure(minute.slowest.as_secs_f64() * 1e3),
                minute.accepted.to_string(),
                minute.tried_again.to_string(),
                minute.reads.to_string(),
                minute.reads_refused.to_string(),
                minute.redis_killed.to_string(),
                minute.worker_killed.to_string(),
                figure_or_dash(statistics::median(minute.memory.clone())),
            ]);
        }
        writeln!(f, "{table}")?;
        let of = |kind| self.wrong.iter().filter(|(wrong, _)| *wrong == kind).count();
        let (pages, errors) = (self.total(|minute| minute.pages), self.total(|minute| minute.page_errors));
        let (accepted, again) = (self.total(|minute| minute.accepted), self.total(|minute| minute.tried_again));
        let (jobs, failed) = (self.total(|minute| minute.jobs), self.total(|minute| minute.jobs_failed));
        writeln!(f, "- {pages} pages: {errors} answered 5xx, {} were wrong in any way.", of(Wrong::Page))?;
        writeln!(f, "- {} more got no connection, in the moment that the Worker was killed.", self.unanswered)?;
        writeln!(
            f,
            "- {accepted} writes accepted, {again} times after another try: {} carts differed from that, {} sessions were wrong,",
            of(Wrong::Cart),
            of(Wrong::Session)
        )?;
        writeln!(f, "  {} writes got another answer or none for a minute.", of(Wrong::Write))?;
        write!(f, "- {jobs} runs of the crons' jobs, {failed} of them failed, while Redis or the Worker was away.")?;
        if let Some((warm, end)) = self.growth() {
            write!(f, "\n- The Worker had {warm:.0} MB when it was warm, and {end:.0} MB at the end.")?;
        }
        Ok(())
    }
}
