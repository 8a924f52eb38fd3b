//! `/items/{item}/related` and `/items/{item}/stats`: related items and figures of an item. The responses are the same
//! for everybody.

use serde_json::{Value, json};

use super::{request::ApiRequest, respond};
use crate::{
    orders::insights::{self, BoughtTogether},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::ids::ItemId,
};

/// `?by=bought&limit=` (`by` may be missing) → `{items: [{id, score}]}`; `?by=viewed&limit=` → `{items: [{id, share}],
/// orders}`; best first.
pub async fn related(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&request.id)?;
    let limit = request.query_number("limit", 8, 50)?;
    let (redis, config) = (&request.app.redis, &request.app.config.insights);
    let document = match request.query_parameter("by")?.as_deref() {
        None | Some("bought") => {
            let related = insights::bought_together(redis, &item, limit, request.now, config).await?;
            let describe = |BoughtTogether { item, score }: &BoughtTogether| json!({"id": item.as_str(), "score": round(*score, 1e4)});
            json!({"items": related.iter().map(describe).collect::<Vec<_>>()})
        }
        Some("viewed") => {
            let bought = insights::bought_by_viewers(redis, &item, limit, request.now, config).await?;
            let items = bought.shares.iter();
            let items = items.map(|(item, share)| json!({"id": item.as_str(), "share": round(*share, 1e4)}));
            json!({"items": items.collect::<Vec<_>>(), "orders": round(bought.orders, 100.0)})
        }
        Some(_) => return Err(Error::invalid("by", "must be bought or viewed").into()),
    };
    Ok(respond::json(respond::SHARED_10_SECONDS, &document).into())
}

/// `{id, rank, views, orders}`. Rank 0 is the most viewed item; null if the item does not rank.
pub async fn stats(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&request.id)?;
    let stats = insights::item_stats(&request.app.redis, &item, request.now, &request.app.config.insights).await?;
    let document = json!({
        "id": item.as_str(),
        "rank": stats.rank,
        "views": round(stats.views, 100.0),
        "orders": round(stats.orders, 100.0),
    });
    Ok(respond::json(respond::SHARED_10_SECONDS, &document).into())
}

/// Rounds to a multiple of 1 / `scale`: 1e4 keeps four decimals.
fn round(number: f64, scale: f64) -> Value {
    json!((number * scale).round() / scale)
}
