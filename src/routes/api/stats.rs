//! `/stats`: counts and sizes of the data in Redis.

use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{metrics::storage, ports::answer::Answer, routes::problem::Problem};

/// The figures of Redis, and the configured limits of sessions and pages.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let stats = storage::read_stats(&request.app.redis, request.now).await?;
    let document = json!({
        "sessions": stats.sessions,
        "earlier_sessions": stats.earlier_sessions,
        "online": stats.online,
        "session_limit": request.app.config.session.limit,
        "ranked_items": stats.ranked_items,
        "scheduled_rows": stats.scheduled_rows,
        "abandoned_carts": stats.abandoned_carts,
        "page_bytes": stats.page_bytes,
        "page_limit": request.app.config.page.total_bytes,
        "keys": stats.keys,
    });
    Ok(respond::json(respond::NO_STORE, &document).into())
}
