//! `/items/{id}/related` and `/items/{id}/stats`: what goes with an item, and its figures. The same for all; a few seconds late does
//! not matter.

use serde_json::{Value, json};

use super::{call::Call, reply};
use crate::{
    orders::insights::{self, BoughtTogether},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::ids::ItemId,
};

const CACHE: &str = "public, max-age=10";

/// `?by=bought` (or nothing) → `{items: [{id, score}]}`, `?by=viewed` → `{items: [{id, share}], orders}`; the best first, `?limit=`
/// of them (1 to 50, 8 without).
pub async fn related(call: Call<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&call.name)?;
    let limit = call.number("limit", 8, 50)?;
    let (redis, config) = (&call.app.redis, &call.app.config.insights);
    let document = match call.parameter("by")?.as_deref() {
        None | Some("bought") => {
            let related = insights::bought_together(redis, &item, limit, call.now, config).await?;
            let items = related.iter();
            let items =
                items.map(|BoughtTogether { item, score }| json!({"id": item.as_str(), "score": round(*score, 1e4)}));
            json!({"items": items.collect::<Vec<_>>()})
        }
        Some("viewed") => {
            let bought = insights::bought_by_viewers(redis, &item, limit, call.now, config).await?;
            let items = bought.shares.iter();
            let items = items.map(|(item, share)| json!({"id": item.as_str(), "share": round(*share, 1e4)}));
            json!({"items": items.collect::<Vec<_>>(), "orders": round(bought.orders, 100.0)})
        }
        Some(_) => return Err(Error::invalid("by", "must be bought or viewed").into()),
    };
    Ok(reply::json(CACHE, &document).into())
}

/// `{id, rank, views, orders}`; rank 0 is the most viewed item, null if it does not rank.
pub async fn stats(call: Call<'_>) -> Result<Answer, Problem> {
    let item = ItemId::parse(&call.name)?;
    let stats = insights::item_stats(&call.app.redis, &item, call.now, &call.app.config.insights).await?;
    let document = json!({
        "id": item.as_str(),
        "rank": stats.rank,
        "views": round(stats.views, 100.0),
        "orders": round(stats.orders, 100.0),
    });
    Ok(reply::json(CACHE, &document).into())
}

/// To so many parts of 1: 1e4 are four decimals.
fn round(number: f64, parts: f64) -> Value {
    json!((number * parts).round() / parts)
}
