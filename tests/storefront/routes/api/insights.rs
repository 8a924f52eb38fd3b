//! `/items/{item}/related` and `/items/{item}/stats`.

use http::Method;
use serde_json::{Value, json};

use super::{Visitor, service};
use crate::support::{Shop, scenarios};

scenarios!(&[];
    items_bought_together_are_related,
    an_item_has_stats,
    an_unknown_item_has_empty_insights,
    insights_cost_one_redis_request,
    an_invalid_parameter_is_refused,
);

async fn order(shop: &Shop, id: &str, items: &[&str]) {
    let items: Vec<_> = items.iter().map(|item| json!({"id": item, "quantity": 1})).collect();
    let answer = service(shop, Method::POST, "/orders", Some(&json!({"order_id": id, "items": items}))).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

async fn get(shop: &Shop, path: &str) -> Value {
    let answer = Visitor::new(shop).get(path).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "public, max-age=10"), "{path}: {answer:?}");
    answer.json
}

/// The worked example of `docs/insights.md`.
async fn items_bought_together_are_related(shop: &Shop) {
    for (id, items) in [("1", &["mug", "pan"][..]), ("2", &["mug", "pan", "lamp"]), ("3", &["mug"]), ("4", &["lamp"])] {
        order(shop, id, items).await;
    }
    let items = json!([{"id": "pan", "score": 0.8165}, {"id": "lamp", "score": 0.4082}]);
    assert_eq!(get(shop, "/items/mug/related?by=bought").await, json!({"items": items}));
    assert_eq!(get(shop, "/items/mug/related?limit=1").await, json!({"items": [items[0]]}));
    let items = json!([{"id": "mug", "score": 0.8165}, {"id": "lamp", "score": 0.5}]);
    assert_eq!(get(shop, "/items/pan/related").await, json!({"items": items}));
}

async fn an_item_has_stats(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-2", "mug", "-7.5", "cup"]).await;
    order(shop, "1", &["mug", "pan"]).await;
    let stats = json!({"id": "mug", "rank": 1, "views": 2.0, "orders": 1.0});
    assert_eq!(get(shop, "/items/mug/stats").await, stats);
    let stats = json!({"id": "pan", "rank": null, "views": 0.0, "orders": 1.0});
    assert_eq!(get(shop, "/items/pan/stats").await, stats);
}

async fn an_unknown_item_has_empty_insights(shop: &Shop) {
    assert_eq!(get(shop, "/items/none/related").await, json!({"items": []}));
    assert_eq!(get(shop, "/items/none/related?by=viewed").await, json!({"items": [], "orders": 0.0}));
    assert_eq!(get(shop, "/items/none/stats").await["rank"], Value::Null);
    // An item that was only bought alone has no related item.
    order(shop, "1", &["mug"]).await;
    assert_eq!(get(shop, "/items/mug/related").await, json!({"items": []}));
}

async fn insights_cost_one_redis_request(shop: &Shop) {
    order(shop, "1", &["mug", "pan"]).await;
    get(shop, "/items/mug/related").await;
    for path in ["/items/mug/related", "/items/mug/related?by=viewed", "/items/mug/stats"] {
        get(shop, path).await;
        assert_eq!(shop.blocking_requests().await, 1, "{path}");
    }
}

async fn an_invalid_parameter_is_refused(shop: &Shop) {
    for (path, field) in [
        ("/items/a%3Ab/related", "item"),
        ("/items/%ff/stats", "item"),
        ("/items/mug/related?by=", "by"),
        ("/items/mug/related?by=sold", "by"),
        ("/items/mug/related?limit=0", "limit"),
        ("/items/mug/related?limit=51", "limit"),
        ("/items/mug/related?limit=1&limit=2", "limit"),
    ] {
        let answer = Visitor::new(shop).get(path).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{path}");
    }
    assert_eq!(shop.store.counts().requests, 0);
}
