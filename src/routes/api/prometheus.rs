//! `/metrics`: all measurements in the text format of Prometheus.

use futures_util::future::try_join3;
use http::{HeaderValue, header};

use super::{request::ApiRequest, respond};
use crate::{
    jobs,
    metrics::{
        prometheus::{CONTENT_TYPE, Exposition},
        storage, traffic,
    },
    ports::answer::Answer,
    routes::problem::Problem,
};

/// The sums of the traffic, the figures of Redis, and the state of the crons.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (redis, config, now) = (&request.app.redis, &request.app.config, request.now);
    let reads = try_join3(traffic::read_totals(redis), storage::read_stats(redis, now), jobs::status(redis, now));
    let (totals, stats, jobs) = reads.await?;
    let mut exposition = Exposition::default();
    exposition.add_traffic(&totals);
    exposition.add_storage(&stats, config.session.limit, config.page.total_bytes);
    exposition.gauge("rows_late_seconds", "Lateness of the most overdue row.", [("", jobs.rows_late)]);
    let heartbeat = jobs.heartbeat.map(|at| ("", at));
    exposition.gauge("cron_heartbeat_timestamp_seconds", "When the crons last ran.", heartbeat);
    let reports = || jobs.reports.iter().map(|(job, report)| (format!("cron_job=\"{job}\""), report));
    let finished = reports().map(|(job, report)| (job, report.finished));
    exposition.gauge("job_last_run_timestamp_seconds", "When a job last did something or failed.", finished);
    let failed = reports().map(|(job, report)| (job, u8::from(report.is_failing(now))));
    exposition.gauge("job_failed", "1 if that run failed, less than ten minutes ago.", failed);
    let mut response = respond::json_bytes(respond::NO_STORE, exposition.into_text().into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    Ok(response.into())
}
