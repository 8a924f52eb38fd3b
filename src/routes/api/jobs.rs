//! `/jobs`: how the crons do, and one run now.

use serde_json::json;

use super::{call::Call, reply};
use crate::{
    jobs::{self, Job},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
};

/// `{heartbeat, rows_late, next: {job: second}, reports: {job: {started, finished, error, done}}}`.
pub async fn list(call: Call<'_>) -> Result<Answer, Problem> {
    let jobs = jobs::jobs(&call.app.redis, call.now).await?;
    Ok(reply::json(reply::PERSONAL, &json!(jobs)).into())
}

/// Runs a job, and answers with its report when it is done.
pub async fn run(call: Call<'_>) -> Result<Answer, Problem> {
    let job = Job::from_name(&call.name).ok_or(Error::NotFound("job"))?;
    let report = jobs::run_job(call.app, job, call.now).await?;
    Ok(reply::json(reply::PERSONAL, &json!(report)).into())
}
