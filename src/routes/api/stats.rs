//! `/stats`: how much there is.

use serde_json::json;

use super::{call::Call, reply};
use crate::{metrics::stats, ports::answer::Answer, routes::problem::Problem};

/// The counts, and the limits that sessions and pages are held under.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let stats = stats::count(&call.app.redis, call.now).await?;
    let document = json!({
        "sessions": stats.sessions,
        "online": stats.online,
        "session_limit": call.app.config.session.limit,
        "ranked_items": stats.ranked_items,
        "scheduled_rows": stats.scheduled_rows,
        "abandoned_carts": stats.abandoned_carts,
        "page_bytes": stats.page_bytes,
        "page_limit": call.app.config.page.total_bytes,
        "keys": stats.keys,
    });
    Ok(reply::json(reply::PERSONAL, &document).into())
}
