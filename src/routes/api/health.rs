//! `/healthz` and `/readyz`: for whoever watches from outside, without a key.

use futures_util::future::join3;
use http::StatusCode;
use serde_json::json;

use super::{call::Call, reply};
use crate::{jobs, metrics::journal, ports::answer::Answer, proxy, routes::problem::Problem};

/// The Worker runs. Redis is not asked: restarting us would not mend it.
pub async fn alive(_: Call<'_>) -> Result<Answer, Problem> {
    Ok(reply::json(reply::PERSONAL, &json!({"status": "ok"})).into())
}

/// Each part, `ok` or what is wrong with it: 200, or 503 where one is ill. Why it is ill is for the log: anybody may ask here.
pub async fn ready(call: Call<'_>) -> Result<Answer, Problem> {
    let redis = &call.app.redis;
    let jobs = jobs::jobs(redis, call.now);
    let (jobs, writes, origin) = join3(jobs, jobs::takes_writes(redis), proxy::check_health(call.app)).await;
    let (redis, crons, rows) = match &jobs {
        Ok(jobs) => (
            if writes.is_ok() { "ok" } else { "ill" },
            if jobs.are_ticking(call.now) { "ok" } else { "silent" },
            if jobs.rows_late < LATE { "ok" } else { "late" },
        ),
        Err(_) => ("ill", "unknown", "unknown"),
    };
    let parts = json!({
        "redis": redis,
        "crons": crons,
        "rows": rows,
        "origin": if origin.is_ok() { "ok" } else { "ill" },
        // Without them the shop works.
        "limits": if call.app.limits.are_set() { "ok" } else { "none" },
    });
    let is_ready = [redis, crons, rows] == ["ok"; 3] && origin.is_ok();
    let mut response = reply::json(reply::PERSONAL, &parts);
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let causes = [jobs.and(writes).err(), origin.err()].into_iter().flatten().map(|error| format!("; {error}"));
        journal::mark(&mut response, "/_edge/v1/readyz".to_owned(), format!("{parts}{}", causes.collect::<String>()));
    }
    Ok(response.into())
}

/// A row that waits so long for its turn, in seconds, waits for a cron that does not do its work: one missed run is made up for.
const LATE: f64 = 150.0;
