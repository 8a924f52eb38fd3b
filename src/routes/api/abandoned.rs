//! `/abandoned`: carts that ended with their session, for a service that reminds their owners.

use serde_json::{Value, json};

use super::{request::ApiRequest, respond};
use crate::{
    carts::abandoned::{self, AbandonedCart, AbandonedCursor},
    ports::answer::Answer,
    routes::problem::Problem,
};

/// `?limit=&before=` → `{carts: [{id, user, seen, ended, items: [{id, quantity}]}], next}`, newest first. `next` is the
/// cursor (`before`) of the following page, null on the last page.
pub async fn list(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let limit = request.query_number("limit", 20, 100)?;
    let before = request.query_parameter("before")?.map(|text| AbandonedCursor::parse(&text)).transpose()?;
    let page = abandoned::read_page(&request.app.redis, before, limit).await?;
    let carts: Vec<_> = page.carts.iter().map(describe).collect();
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(respond::json(respond::NO_STORE, &json!({"carts": carts, "next": next})).into())
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
