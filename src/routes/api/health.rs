//! `/healthz` and `/readyz`: for whoever watches from outside, without a key.

use serde_json::json;

use super::{call::Call, reply};
use crate::{app::Answer, routes::problem::Problem};

/// The Worker runs. Redis is not asked: restarting us would not mend it.
pub async fn alive(_: Call<'_>) -> Result<Answer, Problem> {
    Ok(reply::json(reply::PERSONAL, &json!({"status": "ok"})).into())
}
