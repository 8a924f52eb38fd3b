//! The isolate's memory of idle runs. After an idle run, a cron skips the next one: that halves the commands of an idle
//! shop.

use std::{cell::Cell, time::Duration};

use crate::ports::time::Timestamp;

/// Time for which an idle run counts: until the next cron, which may be late.
const LIFETIME: Duration = Duration::from_secs(390);

/// The last runs of jobs.
#[derive(Default)]
pub struct JobMemory {
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
