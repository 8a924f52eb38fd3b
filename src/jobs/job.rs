//! The jobs and their schedule.

use std::fmt;

use crate::ports::time::Timestamp;

/// The cron that cleans sessions and refreshes rows.
pub const EVERY_MINUTE: &str = "* * * * *";
/// The cron that rescales the ranking and rolls traffic up.
pub const EVERY_FIVE_MINUTES: &str = "*/5 * * * *";

/// A job of the crons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Ends idle sessions and those over the limit. Redis cannot do it: it expires whole keys, not members.
    CleanSessions,
    /// Refreshes the rows that are due; a row with a short period several times within the minute.
    RefreshRows,
    /// Decays the ranking and bounds it.
    Rescale,
    /// Sums the traffic of minutes and hours up.
    RollUp,
}

impl Job {
    pub const ALL: [Self; 4] = [Self::CleanSessions, Self::RefreshRows, Self::Rescale, Self::RollUp];

    /// The name in the API's paths and in `jobs:`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CleanSessions => "clean-sessions",
            Self::RefreshRows => "refresh-rows",
            Self::Rescale => "rescale",
            Self::RollUp => "roll-up",
        }
    }

    /// The Unix second of the cron's next run.
    #[must_use]
    pub const fn next_run(self, now: Timestamp) -> u64 {
        let period = match self {
            // EVERY_MINUTE and EVERY_FIVE_MINUTES.
            Self::CleanSessions | Self::RefreshRows => 60,
            Self::Rescale | Self::RollUp => 300,
        };
        (now.as_secs() / period + 1) * period
    }

    /// The job of that name. None if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|job| job.name() == name)
    }
}

/// The reason for a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    Cron,
    /// A call of `POST /jobs/{job}`.
    Manual,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
