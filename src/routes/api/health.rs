//! `/healthz` and `/readyz`: for whoever watches from outside, without a key.

use http::StatusCode;
use serde_json::json;

use super::{call::Call, reply};
use crate::{app::Answer, maintenance, routes::problem::Problem};

/// The Worker runs. Redis is not asked: restarting us would not mend it.
pub async fn alive(_: Call<'_>) -> Result<Answer, Problem> {
    Ok(reply::json(reply::PERSONAL, &json!({"status": "ok"})).into())
}

/// Redis answers, and the crons run: 200, or 503 with what is wrong.
pub async fn ready(call: Call<'_>) -> Result<Answer, Problem> {
    let jobs = maintenance::jobs(&call.app.redis, call.now).await?;
    let (status, crons) =
        if jobs.are_ticking(call.now) { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "silent") };
    let mut response = reply::json(reply::PERSONAL, &json!({"redis": "ok", "crons": crons}));
    *response.status_mut() = status;
    Ok(response.into())
}
