//! `/healthz` and `/readyz`: probes for monitoring, without a key.

use futures_util::future::join3;
use http::StatusCode;
use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{
    jobs::{self, JobReport, JobsStatus},
    metrics::write_probe,
    ports::{
        answer::Answer,
        problem::{Failure, FailureSource},
    },
    proxy::{self, home},
    routes::problem::Problem,
};

/// A row that is overdue by this many seconds shows that the cron fails; a failed refresh counts for as long. The limit
/// allows one missed run.
const ROWS_LATE_LIMIT: f64 = 150.0;

/// The Worker runs. The probe does not ask Redis, because a restart of the Worker cannot repair Redis.
pub async fn alive(_: ApiRequest<'_>) -> Result<Answer, Problem> {
    Ok(respond::json(respond::NO_STORE, &json!({"status": "ok"})).into())
}

/// The state of each part: 200, or 503 if a part has a problem. The causes go to the log, because the route is public;
/// `rows_cause` says why rows fail.
pub async fn ready(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let redis = &request.app.redis;
    let status = jobs::status(redis, request.now);
    let (status, writable, origin) =
        join3(status, write_probe::check_writable(redis), proxy::check_health(request.app)).await;
    let rows_failure = status.as_ref().ok().and_then(|status| status.rows_failure(request.now, ROWS_LATE_LIMIT));
    let (redis, crons, rows) = match &status {
        Ok(status) => (
            if writable.is_ok() { "ok" } else { "ill" },
            if status.crons_are_running(request.now) { "ok" } else { "silent" },
            rows_state(status, rows_failure),
        ),
        Err(_) => ("ill", "unknown", "unknown"),
    };
    // The edge tier reached the entry point for visitors, which accepts no batches of views.
    let loses_views = home::is_from_edge(request.app, request.headers());
    let mut parts = json!({
        "redis": redis,
        "crons": crons,
        "rows": rows,
        "origin": if origin.is_ok() { "ok" } else { "ill" },
        // The shop works without rate limits, so they do not affect readiness.
        "limits": if request.app.limits.are_set() { "ok" } else { "none" },
        // The pace of this isolate: views and touches wait, visitors do not.
        "views": match request.app.activity.pace().level() {
            _ if loses_views => "lost",
            0 => "ok",
            _ => "reduced",
        },
    });
    let rows_cause = rows_failure.and_then(|report| report.public_error.as_deref());
    if let (Some(cause), Some(parts)) = (rows_cause, parts.as_object_mut()) {
        parts.insert("rows_cause".to_owned(), cause.into());
    }
    let is_ready = [redis, crons, rows] == ["ok"; 3] && origin.is_ok() && !loses_views;
    let mut response = respond::json(respond::NO_STORE, &parts);
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let rows_failure = rows_failure.and_then(|report| report.error.as_ref()).map(|cause| format!("rows: {cause}"));
        let errors = [status.as_ref().err(), writable.as_ref().err(), origin.as_ref().err()];
        let errors = errors.into_iter().flatten().map(ToString::to_string);
        let cause = [parts.to_string()].into_iter().chain(rows_failure).chain(errors).collect::<Vec<_>>().join("; ");
        let (route, source) = ("/_edge/v1/readyz".to_owned(), FailureSource::Edgefront);
        Failure { route, kind: "not-ready", cause, source }.attach(&mut response);
    }
    Ok(response.into())
}

/// A failing source is the more specific problem: its rows become late, too.
fn rows_state(status: &JobsStatus, failure: Option<&JobReport>) -> &'static str {
    match failure {
        Some(_) => "failing",
        None if status.rows_late >= ROWS_LATE_LIMIT => "late",
        None => "ok",
    }
}
