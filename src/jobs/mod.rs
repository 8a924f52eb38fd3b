//! The cron jobs. Each job is safe to run twice, concurrently or late, and a failing job stops no other.
//!
//! Every command is billed, so a run that finds nothing to do costs one Redis command for each job, and most jobs skip
//! most minutes. An idle shop thus spends 45,000 of the free plan's 500,000 commands a month. If the platform runs each
//! cron in a new isolate, each job sends its command at every run: 75,000. An idle run writes no report; the heartbeat shows that the crons run.
//!
//! - [`idle`]: skips a run after an idle one.
//! - [`job`]: the jobs and their schedule.
//! - [`report`]: the last reports, and the heartbeat.
//! - [`mod@run`]: one run of one job.

mod idle;
mod job;
mod report;
mod run;

use std::time::Duration;

use futures_util::future::join_all;

pub use self::{
    idle::JobMemory,
    job::{EVERY_FIVE_MINUTES, EVERY_MINUTE, Job},
    report::{JobReport, JobsStatus, status},
};
use self::{job::Trigger, run::run};
use crate::{
    App,
    metrics::event_log::{self, JobRun},
    ports::{budget::Budget, error::Error, time::Timestamp},
};

/// The time of one cron run: nearly the minute until the next run begins.
const CRON_TIME: Duration = Duration::from_secs(55);

/// Runs the jobs of a cron trigger concurrently and logs one line. The line and `jobs:` report a failed job; the next
/// run catches up.
pub async fn run_cron(app: &App, cron: &str, now: Timestamp) {
    let jobs: &[Job] = match cron {
        EVERY_MINUTE => &[Job::CleanSessions, Job::RefreshRows],
        EVERY_FIVE_MINUTES => &[Job::Rescale, Job::RollUp],
        _ => return log::error!("the cron {cron:?} has no job: use the crons of src/jobs in wrangler.toml"),
    };
    let budget = budget(app);
    let runs = join_all(jobs.iter().map(async |job| {
        let (report, _) = run(app, *job, Trigger::Cron, &budget, now).await;
        JobRun { name: job.name(), done: report.done, error: report.error }
    }));
    let runs = runs.await;
    event_log::cron(cron, app.clock.now().since(now).as_secs_f64(), runs);
}

/// Runs a job once, on request, and does not wait for rows that are due later. A job that succeeds in part (a row
/// source failed) returns a report with an error.
///
/// # Errors
/// [`Error`] if the job failed as a whole.
pub async fn run_job(app: &App, job: Job, now: Timestamp) -> Result<JobReport, Error> {
    let (report, result) = run(app, job, Trigger::Manual, &budget(app), now).await;
    let job_run = JobRun { name: job.name(), done: report.done.clone(), error: report.error.clone() };
    event_log::job(job_run, report.finished - report.started);
    result.map(|()| report)
}

/// The budget of one invocation.
fn budget(app: &App) -> Budget {
    Budget::new(app.clock.clone(), CRON_TIME, app.config.subrequests)
}
