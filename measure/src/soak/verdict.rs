//! The results of a run as Markdown, and whether the run has passed.

use std::fmt::{self, Write as _};

use xtask::failure::Failure;

use super::tally::{Minute, Tally, Violation};
use crate::{
    statistics::median,
    table::{Table, format_figure, format_figure_or_dash},
};

/// The largest memory of the Worker's process at the end, MB. V8 has no memory limit here and collects late: 46,000
/// pages at once brought the process to 406 MB, and 22,000 more to 407. A leak in each request exceeds the limit in
/// time.
const MAX_MEMORY: f64 = 512.0;
/// The smallest number of memory samples for a median: half a minute.
const MIN_MEMORY_SAMPLES: usize = 30;
/// The number of violations that the failure describes.
const MAX_DESCRIBED: usize = 10;

impl Tally {
    /// Checks the whole run.
    ///
    /// # Errors
    /// With a description of all violations.
    pub fn verdict(&self) -> Result<(), Failure> {
        let mut text = String::new();
        for (_, description) in self.violations.iter().take(MAX_DESCRIBED) {
            let _ = writeln!(text, "{description}");
        }
        if self.violations.len() > MAX_DESCRIBED {
            let _ = writeln!(text, "and {} more", self.violations.len() - MAX_DESCRIBED);
        }
        if let Some((warm, end)) = self.memory_growth()
            && end > MAX_MEMORY
        {
            let _ = writeln!(text, "the Worker's memory grew from {warm:.0} to {end:.0} MB (at most {MAX_MEMORY} MB)");
        }
        if text.is_empty() { Ok(()) } else { Err(Failure::new(text.trim(), "see the Worker's log in target/soak")) }
    }

    /// The Worker's memory after its warm-up and at the end, MB. Each is the median of one fifth of the samples. `None`
    /// if the memory is unknown or the run was too short.
    fn memory_growth(&self) -> Option<(f64, f64)> {
        let samples: Vec<f64> = self.minutes.values().flat_map(|minute| &minute.memory).copied().collect();
        let fifth = samples.len() / 5;
        if fifth < MIN_MEMORY_SAMPLES {
            return None;
        }
        let (warm, end) = (samples.get(2 * fifth..3 * fifth)?, samples.get(samples.len() - fifth..)?);
        Some((median(warm.iter().copied())?, median(end.iter().copied())?))
    }

    fn table(&self) -> Table {
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
            table.push_row([
                number.to_string(),
                minute.pages.to_string(),
                minute.page_errors.to_string(),
                format_figure(minute.slowest_page.as_secs_f64() * 1e3),
                minute.writes_accepted.to_string(),
                minute.writes_retried.to_string(),
                minute.reads.to_string(),
                minute.reads_refused.to_string(),
                minute.redis_kills.to_string(),
                minute.worker_kills.to_string(),
                format_figure_or_dash(median(minute.memory.iter().copied())),
            ]);
        }
        table
    }

    fn total(&self, count: impl Fn(&Minute) -> u64) -> u64 {
        self.minutes.values().map(count).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.table())?;
        let violations = |kind| self.violations.iter().filter(|(violation, _)| *violation == kind).count();
        let (pages, errors) = (self.total(|minute| minute.pages), self.total(|minute| minute.page_errors));
        writeln!(f, "- {pages} pages: {errors} with status 5xx, {} wrong in any way.", violations(Violation::Page))?;
        writeln!(f, "- {} more page requests got no connection just after the kill of the Worker.", self.unanswered)?;
        let accepted = self.total(|minute| minute.writes_accepted);
        let retries = self.total(|minute| minute.writes_retried);
        writeln!(
            f,
            "- {accepted} writes accepted, with {retries} retries: {} carts differed from them, {} sessions wrong,",
            violations(Violation::Cart),
            violations(Violation::Session)
        )?;
        writeln!(f, "  {} writes got another status, or no response for a minute,", violations(Violation::Write))?;
        writeln!(f, "  {} reads got another status.", violations(Violation::Read))?;
        let (jobs, failed) = (self.total(|minute| minute.jobs), self.total(|minute| minute.jobs_failed));
        write!(f, "- {jobs} runs of the cron jobs: {failed} failed while Redis or the Worker was down.")?;
        if let Some(histories) = &self.histories {
            write!(f, "\n- {histories}.")?;
        }
        if let Some((warm, end)) = self.memory_growth() {
            write!(f, "\n- The Worker had {warm:.0} MB after its warm-up, and {end:.0} MB at the end.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_a_violation_fails_and_the_failure_describes_it() {
        let mut tally = Tally::new();
        assert_eq!(tally.verdict(), Ok(()));
        tally.violation(Violation::Cart, "one item too many");
        let failure = tally.verdict().unwrap_err();
        assert!(failure.cause.starts_with("Cart") && failure.cause.ends_with("one item too many"), "{failure}");
    }

    #[test]
    fn memory_may_not_grow_beyond_the_limit() {
        let tally_with = |end: f64| {
            let mut tally = Tally::new();
            (0..5 * MIN_MEMORY_SAMPLES).for_each(|number| {
                tally.memory(Some(if number < 4 * MIN_MEMORY_SAMPLES { 100.0 } else { end }));
            });
            tally
        };
        assert_eq!(tally_with(MAX_MEMORY).memory_growth(), Some((100.0, MAX_MEMORY)));
        assert_eq!(tally_with(MAX_MEMORY).verdict(), Ok(()));
        assert!(tally_with(MAX_MEMORY + 1.0).verdict().is_err());
    }
}
