//! One run of one job.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    CRON_TIME,
    job::{Job, Trigger},
    report::{JobReport, store_heartbeat, store_report},
};
use crate::{
    App,
    metrics::traffic::{self, RollUpReport},
    ports::{budget::Budget, error::Error, time::Timestamp},
    ranking,
    row_cache::{self, RowSource},
    schema::redis::Redis,
    sessions::{self, CleanupProbe},
};

/// The deadline of a job's call to Redis. No visitor waits for it, and its batches are larger than a visitor's
/// requests.
const REDIS_DEADLINE: Duration = Duration::from_secs(10);
/// The time of a cleanup: less than the 30 s of CPU time of an invocation. It cleans tens of thousands of sessions a
/// second.
const CLEANUP_TIME: Duration = Duration::from_secs(25);
/// The period of the cron that refreshes rows.
const MINUTE: Duration = Duration::from_mins(1);
/// The time of a refresh on request: the API's caller waits for it.
const MANUAL_REFRESH_TIME: Duration = Duration::from_secs(20);

/// The work that a job did; by default, none.
#[derive(Default)]
struct JobOutcome {
    /// Numbers with names, or null.
    done: Value,
    /// The cause if a part of the job failed.
    error: Option<Error>,
}

impl From<Value> for JobOutcome {
    fn from(done: Value) -> Self {
        Self { done, error: None }
    }
}

/// Runs a job and stores its report, unless a cron found nothing to do. The result is an error if the job failed as a
/// whole.
pub(super) async fn run(
    app: &App,
    job: Job,
    trigger: Trigger,
    budget: &Budget,
    now: Timestamp,
) -> (JobReport, Result<(), Error>) {
    let redis = app.redis.with_deadline(REDIS_DEADLINE).through(budget.fetch(app.fetch.clone()));
    let outcome = match job {
        Job::CleanSessions => clean_sessions(app, &redis, trigger, budget, now).await,
        Job::RefreshRows => refresh_rows(app, &redis, trigger, budget, now).await,
        Job::Rescale => rescale(app, &redis, trigger, now).await,
        Job::RollUp => roll_up(app, &redis, trigger, now).await,
    };
    let (done, error) = match &outcome {
        Ok(JobOutcome { done, error }) => (done.as_object().cloned().unwrap_or_default(), error.as_ref()),
        Err(error) => (Map::new(), Some(error)),
    };
    let report = JobReport {
        started: now.as_score(),
        finished: app.clock.now().as_score(),
        error: error.map(ToString::to_string),
        public_error: error.map(Error::public_message),
        done,
    };
    if !report.is_idle() || report.error.is_some() || trigger == Trigger::Manual {
        store_report(&redis, job, trigger, &report).await;
    }
    (report, outcome.map(drop))
}

/// Ends sessions over the limit and idle ones. A cron looks every third minute, for one kind at a time, and ends
/// everything that it finds. Every ninth minute it writes the heartbeat instead.
async fn clean_sessions(
    app: &App,
    redis: &Redis,
    trigger: Trigger,
    budget: &Budget,
    now: Timestamp,
) -> Result<JobOutcome, Error> {
    let probe = match (trigger, now.as_secs() / 60 % 9) {
        (Trigger::Manual, _) => CleanupProbe::Skip,
        (Trigger::Cron, 0) => CleanupProbe::Overflow,
        (Trigger::Cron, 3) => CleanupProbe::Idle,
        (Trigger::Cron, 6) => {
            store_heartbeat(redis, now).await?;
            return Ok(JobOutcome::default());
        }
        (Trigger::Cron, _) => return Ok(JobOutcome::default()),
    };
    let cleaned = sessions::clean(redis, &app.config.session, probe, &budget.within(CLEANUP_TIME)).await?;
    Ok(json!({"sessions": cleaned.sessions, "carts": cleaned.carts, "unfinished": cleaned.unfinished}).into())
}

/// Refreshes the rows that are due, if there is a row source. A cron continues until the minute is nearly over. If no row
/// is due within this minute, as a recent run in this isolate saw, a cron skips every second run. A row scheduled meanwhile
/// is refreshed up to a minute late, or by its next reader.
async fn refresh_rows(
    app: &App,
    redis: &Redis,
    trigger: Trigger,
    budget: &Budget,
    now: Timestamp,
) -> Result<JobOutcome, Error> {
    let fetch = budget.fetch(app.fetch.clone());
    let database = app.database.clone().map(|database| budget.database(database));
    let Some(rows) = &app.config.rows else { return Ok(JobOutcome::default()) };
    if trigger == Trigger::Cron && (now.as_secs() / 60).is_multiple_of(2) && app.jobs.rows.is_idle(now, now + MINUTE) {
        return Ok(JobOutcome::default());
    }
    let source = RowSource::new(rows, &*fetch, database.as_deref(), &*app.clock);
    let (time, due_by) = match trigger {
        Trigger::Cron => (CRON_TIME, now + CRON_TIME),
        Trigger::Manual => (MANUAL_REFRESH_TIME, now),
    };
    let (mut report, next_due) = row_cache::refresh_due(redis, &source, &budget.within(time), due_by).await?;
    app.jobs.rows.note_next_due(app.clock.now(), next_due);
    let error = report.cause.take();
    Ok(JobOutcome { done: json!(report), error })
}

async fn rescale(app: &App, redis: &Redis, trigger: Trigger, now: Timestamp) -> Result<JobOutcome, Error> {
    let idle = || Ok(json!(ranking::RescaleReport::default()).into());
    if trigger == Trigger::Cron && app.jobs.rescale.allows_skip(now) {
        return idle();
    }
    // One command instead of the script's six. The two need not be one step: views that come in between wait for the
    // next run.
    if ranking::is_empty(redis).await? {
        app.jobs.rescale.note_idle(now);
        return idle();
    }
    Ok(json!(ranking::rescale(redis, now, &app.config.ranking).await?).into())
}

async fn roll_up(app: &App, redis: &Redis, trigger: Trigger, now: Timestamp) -> Result<JobOutcome, Error> {
    let is_off = app.config.traffic_interval.is_zero();
    if is_off || trigger == Trigger::Cron && app.jobs.roll_up.allows_skip(now) {
        return Ok(json!(RollUpReport::default()).into());
    }
    let report = traffic::roll_up(redis, now).await?;
    if report.is_none() {
        app.jobs.roll_up.note_idle(now);
    }
    Ok(json!(report.unwrap_or_default()).into())
}
