//! The isolate's memory of idle runs. After an idle run, a cron skips the next one: that halves the commands of an idle
//! shop.

use std::{cell::Cell, time::Duration};

use crate::ports::time::Timestamp;

/// Time for which an idle run counts: until the next cron, which may be late.
const LIFETIME: Duration = Duration::from_secs(390);

/// Time for which a look at the schedule of rows counts: until the second cron after it, which may be late.
const LOOK_LIFETIME: Duration = Duration::from_secs(90);

/// The last runs of jobs.
#[derive(Default)]
pub struct JobMemory {
    pub(super) rows: RowLook,
    pub(super) rescale: IdleRun,
    pub(super) roll_up: IdleRun,
}

/// The last run of a job, if it found nothing to do.
#[derive(Default)]
pub(super) struct IdleRun(Cell<Option<Timestamp>>);

impl IdleRun {
    /// Returns whether the last run was idle and recent. Answers only once, so no two runs in a row are skipped.
    pub(super) fn allows_skip(&self, now: Timestamp) -> bool {
        self.0.take().is_some_and(|last| now.is_within(LIFETIME, last))
    }

    pub(super) fn note_idle(&self, now: Timestamp) {
        self.0.set(Some(now));
    }
}

/// The last look at the schedule of rows, and when the first row was due.
#[derive(Default)]
pub(super) struct RowLook(Cell<Option<(Timestamp, Option<Timestamp>)>>);

impl RowLook {
    /// Notes when the first row is due; None if no row is scheduled.
    pub(super) fn note_next_due(&self, now: Timestamp, due: Option<Timestamp>) {
        self.0.set(Some((now, due)));
    }

    /// Returns whether a recent look at the schedule showed that no row is due by `until`.
    pub(super) fn is_idle(&self, now: Timestamp, until: Timestamp) -> bool {
        self.0.get().is_some_and(|(at, due)| now.is_within(LOOK_LIFETIME, at) && due.is_none_or(|due| due > until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_the_schedule_counts_for_a_short_time_and_not_after_the_clock_was_set_back() {
        let (rows, now) = (RowLook::default(), Timestamp::from_millis(1_795_000_000_123));
        let until = |now| now + Duration::from_mins(1);
        assert!(!rows.is_idle(now, until(now)));
        rows.note_next_due(now, Some(until(now)));
        assert!(!rows.is_idle(now, until(now)), "due");
        rows.note_next_due(now, None);
        for (now, is_idle) in [(now, true), (now + LOOK_LIFETIME, false), (now - LOOK_LIFETIME, false)] {
            assert_eq!(rows.is_idle(now, until(now)), is_idle, "{now}");
        }
    }
}
