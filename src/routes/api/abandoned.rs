//! `/abandoned`: the carts that ended with their session, for who reminds their owners.

use serde_json::{Value, json};

use super::{call::Call, reply};
use crate::{
    carts::abandoned::{self, AbandonedCart, AbandonedCursor},
    ports::answer::Answer,
    routes::problem::Problem,
};

/// `?limit=` (1 to 100, 20 without) `&before=` (a cursor) → `{carts: [{id, user, seen, ended, items: [{id, quantity}]}], next}`, the
/// one that ended last first. `next` is the cursor of the page that follows, null if this one is the last.
pub async fn list(call: Call<'_>) -> Result<Answer, Problem> {
    let limit = call.number("limit", 20, 100)?;
    let before = call.parameter("before")?.map(|text| AbandonedCursor::parse(&text)).transpose()?;
    let page = abandoned::read_page(&call.app.redis, before, limit).await?;
    let carts: Vec<_> = page.carts.iter().map(describe).collect();
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(reply::json(reply::PERSONAL, &json!({"carts": carts, "next": next})).into())
}

fn describe(cart: &AbandonedCart) -> Value {
    let items = cart.lines.iter().map(|line| json!({"id": line.item.as_str(), "quantity": line.quantity}));
    json!({
        "id": cart.id.to_string(),
        "user": cart.user,
        "seen": cart.last_seen,
        "ended": cart.ended.as_score(),
        "items": items.collect::<Vec<_>>(),
    })
}
