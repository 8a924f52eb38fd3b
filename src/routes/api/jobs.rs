//! `/jobs`: the state of the cron jobs, and a run on request.

use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{
    jobs::{self, Job},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
};

/// `{heartbeat, rows_late, next: {job: second}, reports: {job: {started, finished, error, public_error, done}}}`.
pub async fn list(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let status = jobs::status(&request.app.redis, request.now).await?;
    Ok(respond::json(respond::NO_STORE, &json!(status)).into())
}

/// Runs a job and answers with its report.
pub async fn run(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let job = Job::from_name(&request.id).ok_or(Error::NotFound("job"))?;
    let (app, now) = (request.app, request.now);
    // As the cron: a job reads its own writes.
    let report = app.redis.in_scope(None, jobs::run_job(app, job, now)).await?;
    Ok(respond::json(respond::NO_STORE, &json!(report)).into())
}
