//! The three jobs of the crons: which is due, run one, report. Each is safe to run twice, overlapping or late, and one that
//! fails stops no other.
//!
//! A run that finds nothing to do costs one Redis command (a rescale, once in five minutes, six with those of its script),
//! since every command is billed: an idle shop then spends 130,000 of the free plan's 500,000 a month. So such a run leaves
//! no report; that the crons run at all is told by the heartbeat.

use std::{collections::BTreeMap, fmt, time::Duration};

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    App,
    metrics::journal,
    ports::{budget::Budget, error::Error, time::Timestamp},
    ranking,
    row_cache::{self, EarliestDue, RowSource},
    schema::{keys, redis::Redis},
    sessions::{self, CleanupProbe},
};
use upstash_rest::{Command, Pairs, parse_f64};

/// Cleans sessions and refreshes rows.
pub const EVERY_MINUTE: &str = "* * * * *";
/// Rescales the ranking.
pub const EVERY_FIVE_MINUTES: &str = "*/5 * * * *";

/// Redis deadline of a job: no visitor waits, and a batch is larger than a visitor's request.
const JOB_REDIS_TIMEOUT: Duration = Duration::from_secs(10);
/// Less than the 30 s of CPU time that an invocation has; tens of thousands of sessions a second go in it.
const CLEANING: Duration = Duration::from_secs(25);
/// Nearly the minute after which the next run begins.
const REFRESHING: Duration = Duration::from_secs(55);
/// Time limit of a row refresh that an API caller waits for.
const REFRESHING_NOW: Duration = Duration::from_secs(20);
/// The crons write their heartbeat with each report, and every third minute where there is none: two of them were missed, and then some.
const SILENCE: Duration = Duration::from_mins(10);
/// The field of `jobs:` for the heartbeat.
const HEARTBEAT: &str = "heartbeat";

/// The jobs of the crons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Ends idle sessions and those over the cap: Redis expires whole keys, not members.
    CleanSessions,
    /// Refreshes the rows that are due, several times within the minute where their period says so.
    RefreshRows,
    /// Lets old views count less, and bounds the ranking.
    Rescale,
}

impl Job {
    pub const ALL: [Self; 3] = [Self::CleanSessions, Self::RefreshRows, Self::Rescale];

    /// As in the API's paths and in `jobs:`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CleanSessions => "clean-sessions",
            Self::RefreshRows => "refresh-rows",
            Self::Rescale => "rescale",
        }
    }

    /// When its cron fires next, Unix seconds.
    #[must_use]
    pub const fn next(self, now: Timestamp) -> u64 {
        let every = match self {
            // EVERY_MINUTE and EVERY_FIVE_MINUTES.
            Self::CleanSessions | Self::RefreshRows => 60,
            Self::Rescale => 300,
        };
        (now.as_secs() / every + 1) * every
    }

    /// The job of that name; None if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|job| job.name() == name)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// Unix seconds.
    pub started: f64,
    /// Unix seconds.
    pub finished: f64,
    /// Why it failed, or a part of it: for the operator. None if all went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The work done, as named numbers.
    pub done: Map<String, Value>,
}

/// The state of all jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Jobs {
    /// When the crons last showed that they run, Unix seconds; None if they never have. At most 3 minutes old.
    pub heartbeat: Option<f64>,
    /// By how many seconds the row that waits longest is late; 0 if none is.
    pub rows_late: f64,
    /// When each job's cron fires next, Unix seconds.
    pub next: BTreeMap<&'static str, u64>,
    /// Each job's last run that did something, failed, or was asked for.
    pub reports: BTreeMap<String, JobReport>,
}

impl Jobs {
    /// Returns whether the crons run, or have never run yet: a shop that was just deployed is ready.
    #[must_use]
    pub fn are_ticking(&self, now: Timestamp) -> bool {
        self.heartbeat.is_none_or(|last| now.since(Timestamp::from_score(last)) < SILENCE)
    }
}

/// What a cron trigger stands for: runs its jobs side by side, and logs a line. A job that failed is reported there and in `jobs:`; the
/// next run makes up for it.
pub async fn run_cron(app: &App, cron: &str, now: Timestamp) {
    let jobs: &[Job] = match cron {
        EVERY_MINUTE => &[Job::CleanSessions, Job::RefreshRows],
        EVERY_FIVE_MINUTES => &[Job::Rescale],
        _ => return log::error!("no job belongs to the cron {cron:?}: wrangler.toml and the code differ"),
    };
    let budget = budget(app);
    let runs = join_all(jobs.iter().map(async |job| {
        let (report, _) = run(app, *job, Occasion::Cron, &budget, now).await;
        (job.name(), report.done, report.error)
    }));
    let runs = runs.await;
    journal::cron(cron, app.clock.now().since(now).as_secs_f64(), &runs);
}

/// Runs a job once, because somebody asked for it, and does not wait for rows that are due later. What could be done in
/// part (a source of rows failed) is a report with an error.
///
/// # Errors
/// [`Error`], if the job could not be done.
pub async fn run_job(app: &App, job: Job, now: Timestamp) -> Result<JobReport, Error> {
    let (report, result) = run(app, job, Occasion::Asked, &budget(app), now).await;
    journal::job((job.name(), report.done.clone(), report.error.clone()), report.finished - report.started);
    result.map(|()| report)
}

/// The budget of one invocation.
fn budget(app: &App) -> Budget {
    Budget::new(app.clock.clone(), REFRESHING, app.config.subrequests)
}

/// The last reports, and how late the jobs are: one pipeline, since the two do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn jobs(redis: &Redis, now: Timestamp) -> Result<Jobs, Error> {
    let (Pairs::<String, String>(fields), EarliestDue(earliest)) =
        redis.all(&[Command::read("HGETALL").arg(keys::JOBS), row_cache::earliest_due_command(redis.keys())]).await?;
    let next = Job::ALL.into_iter().map(|job| (job.name(), job.next(now))).collect();
    let mut jobs = Jobs { heartbeat: None, rows_late: 0.0, next, reports: BTreeMap::new() };
    jobs.rows_late = earliest.map_or(0.0, |due| now.since(due).as_secs_f64());
    for (name, text) in fields {
        if name == HEARTBEAT {
            jobs.heartbeat = parse_f64(&text);
        } else if let Ok(report) = serde_json::from_str(&text) {
            jobs.reports.insert(name, report);
        }
    }
    Ok(jobs)
}

/// Finds out whether Redis takes writes: one that is full answers every read. This one changes nothing.
///
/// # Errors
/// [`Error::Redis`].
pub async fn takes_writes(redis: &Redis) -> Result<(), Error> {
    let nothing = Command::write("ZADD").arg(redis.keys().ranking()).arg("XX").num(0).arg("").repeatable();
    Ok(redis.run(nothing).await?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Cron,
    Asked,
}

/// The work that a job did, and why it stopped early.
struct Work {
    done: Value,
    cause: Option<Error>,
}

impl From<Value> for Work {
    fn from(done: Value) -> Self {
        Self { done, cause: None }
    }
}

/// Runs a job and keeps its report. The result is an error if the job could not be done at all.
async fn run(
    app: &App,
    job: Job,
    occasion: Occasion,
    budget: &Budget,
    now: Timestamp,
) -> (JobReport, Result<(), Error>) {
    let redis = app.redis.with_deadline(JOB_REDIS_TIMEOUT).through(budget.fetch(app.fetch.clone()));
    let work = match job {
        Job::CleanSessions => clean_sessions(app, &redis, occasion, budget, now).await,
        Job::RefreshRows => refresh_rows(app, &redis, occasion, budget, now).await,
        Job::Rescale => rescale(app, &redis, now).await,
    };
    let (done, cause) = match &work {
        Ok(Work { done, cause }) => (done.as_object().cloned().unwrap_or_default(), cause.as_ref()),
        Err(error) => (Map::new(), Some(error)),
    };
    let error = cause.map(ToString::to_string);
    let is_idle = done.values().all(|count| matches!(count.as_u64(), Some(0)) || *count == Value::Bool(false));
    let report = JobReport { started: now.as_score(), finished: app.clock.now().as_score(), error, done };
    if !is_idle || report.error.is_some() || occasion == Occasion::Asked {
        keep(&redis, job, occasion, &report).await;
    }
    (report, work.map(drop))
}

/// Keeps a report, and with that of a cron its heartbeat: it is the same command. A report that cannot be kept does not undo the job:
/// that is logged.
async fn keep(redis: &Redis, job: Job, occasion: Occasion, report: &JobReport) {
    let text = json!(report).to_string();
    let mut keep = Command::write("HSET").arg(keys::JOBS).arg(job.name()).arg(text).repeatable();
    if occasion == Occasion::Cron {
        keep = keep.arg(HEARTBEAT).num(Timestamp::from_score(report.finished));
    }
    if let Err(error) = redis.run::<()>(keep).await {
        log::error!("{job}: the report was not kept: {error}");
    }
}

/// Looks for sessions to end. A run of the cron asks one question, in turn by the minute; what it finds, it does in full.
async fn clean_sessions(
    app: &App,
    redis: &Redis,
    occasion: Occasion,
    budget: &Budget,
    now: Timestamp,
) -> Result<Work, Error> {
    let probe = match (occasion, now.as_secs() / 60 % 3) {
        (Occasion::Asked, _) => CleanupProbe::Skip,
        (Occasion::Cron, 0) => CleanupProbe::Overflow,
        (Occasion::Cron, 1) => CleanupProbe::Idle,
        (Occasion::Cron, _) => {
            let beat = Command::write("HSET").arg(keys::JOBS).arg(HEARTBEAT).num(now).repeatable();
            redis.run::<()>(beat).await?;
            return Ok(json!({}).into());
        }
    };
    let cleaned = sessions::clean(redis, &app.config.session, probe, &budget.within(CLEANING)).await?;
    Ok(json!({"sessions": cleaned.sessions, "carts": cleaned.carts, "unfinished": cleaned.unfinished}).into())
}

/// Refreshes rows, if there is a source of them. The cron stays until the minute is nearly over.
async fn refresh_rows(
    app: &App,
    redis: &Redis,
    occasion: Occasion,
    budget: &Budget,
    now: Timestamp,
) -> Result<Work, Error> {
    let fetch = budget.fetch(app.fetch.clone());
    let database = app.database.clone().map(|database| budget.database(database));
    let Some(rows) = &app.config.rows else { return Ok(json!({}).into()) };
    let source = RowSource::new(rows, &*fetch, database.as_deref(), &*app.clock);
    let (time, due_by) = match occasion {
        Occasion::Cron => (REFRESHING, now + REFRESHING),
        Occasion::Asked => (REFRESHING_NOW, now),
    };
    let mut report = row_cache::refresh_due(redis, &source, &budget.within(time), due_by).await?;
    let cause = report.cause.take();
    Ok(Work { done: json!(report), cause })
}

async fn rescale(app: &App, redis: &Redis, now: Timestamp) -> Result<Work, Error> {
    Ok(json!(ranking::rescale(redis, now, &app.config.ranking).await?).into())
}
