//! The hash `jobs:`: the last report of each job, and the crons' heartbeat.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::job::{Job, Trigger};
use crate::{
    ports::{error::Error, time::Timestamp},
    row_cache::{self, EarliestDue},
    schema::{keys, redis::Redis},
};
use upstash_rest::{Command, Pairs, parse_f64};

/// The crons count as silent after this time. They write the heartbeat with each report, and at least every ninth
/// minute.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_mins(20);
/// A failing job reports again within this time; the slowest, `clean-sessions`, needs nine minutes.
const FAILURE_LIFETIME: Duration = Duration::from_mins(10);
/// The heartbeat's field in `jobs:`.
const HEARTBEAT: &str = "heartbeat";

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// Unix seconds.
    pub started: f64,
    /// Unix seconds.
    pub finished: f64,
    /// The cause if the job failed as a whole or in part. None if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The cause without data: see [`Error::public_message`]. None in a report of an older release, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_error: Option<String>,
    /// The work that the run did: numbers with names.
    pub done: Map<String, Value>,
}

impl JobReport {
    /// True if the run found nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.done.values().all(|value| matches!(value.as_u64(), Some(0)) || *value == Value::Bool(false))
    }

    /// True if the run failed less than ten minutes ago. An older failure is over: later runs found nothing to do, and such
    /// a run stores no report.
    #[must_use]
    pub fn is_failing(&self, now: Timestamp) -> bool {
        self.error.is_some() && now.since(Timestamp::from_score(self.finished)) < FAILURE_LIFETIME
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobsStatus {
    /// The crons' last heartbeat, Unix seconds. At most 9 minutes old while the crons run; None before their first run.
    pub heartbeat: Option<f64>,
    /// The lateness of the most overdue row, in seconds; 0 if no row is overdue.
    pub rows_late: f64,
    /// The next run of each job, Unix seconds.
    pub next: Map<String, Value>,
    /// The last run of each job that did something, failed, or was requested.
    pub reports: BTreeMap<String, JobReport>,
}

impl JobsStatus {
    /// True if the heartbeat is recent, and before the first run: a newly deployed shop is ready.
    #[must_use]
    pub fn crons_are_running(&self, now: Timestamp) -> bool {
        self.heartbeat.is_none_or(|last| now.since(Timestamp::from_score(last)) < HEARTBEAT_TIMEOUT)
    }

    /// The report of the last refresh of rows, if it failed in whole or in part. None if it succeeded, or if it ended more
    /// than `within` seconds ago: a failing source is tried again at least every 30 s, so each cron run reports it
    /// anew.
    #[must_use]
    pub fn rows_failure(&self, now: Timestamp, within: f64) -> Option<&JobReport> {
        let report = self.reports.get(Job::RefreshRows.name())?;
        let is_recent = now.since(Timestamp::from_score(report.finished)).as_secs_f64() < within;
        (is_recent && report.error.is_some()).then_some(report)
    }
}

/// Reads the last reports and the most overdue row. One pipeline, because the reads do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn status(redis: &Redis, now: Timestamp) -> Result<JobsStatus, Error> {
    let (Pairs::<String, String>(fields), EarliestDue(earliest)) =
        redis.all(&[Command::read("HGETALL").arg(keys::JOBS), row_cache::earliest_due_command(redis.keys())]).await?;
    let rows_late = earliest.map_or(0.0, |due| now.since(due).as_secs_f64());
    let mut status = JobsStatus { heartbeat: None, rows_late, next: Map::new(), reports: BTreeMap::new() };
    // Not collected: that sorts, and a sort of its own is 4 KB of wasm.
    status.next.extend(Job::ALL.into_iter().map(|job| (job.name().to_owned(), job.next_run(now).into())));
    for (name, text) in fields {
        if name == HEARTBEAT {
            status.heartbeat = parse_f64(&text);
        } else if let Ok(report) = serde_json::from_str(&text) {
            status.reports.insert(name, report);
        }
    }
    Ok(status)
}

/// Stores a report. A cron's report is its heartbeat, too: one command writes both. A failure is logged and does not
/// undo the job.
pub(super) async fn store_report(redis: &Redis, job: Job, trigger: Trigger, report: &JobReport) {
    let text = json!(report).to_string();
    let mut store = Command::write("HSET").arg(keys::JOBS).arg(job.name()).arg(text).repeatable();
    if trigger == Trigger::Cron {
        store = store.arg(HEARTBEAT).num(Timestamp::from_score(report.finished));
    }
    if let Err(error) = redis.run::<()>(store).await {
        log::error!("the report of {job} was not stored: {error}");
    }
}

/// Writes the crons' heartbeat without a report.
///
/// # Errors
/// [`Error::Redis`].
pub(super) async fn store_heartbeat(redis: &Redis, now: Timestamp) -> Result<(), Error> {
    Ok(redis.run(Command::write("HSET").arg(keys::JOBS).arg(HEARTBEAT).num(now).repeatable()).await?)
}
