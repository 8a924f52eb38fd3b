//! `/orders`: orders that a service reports.

use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, log_in, service};
use crate::support::{Shop, scenarios};

scenarios!(&[];
    a_reported_order_is_taken_from_the_cart_of_its_session,
    a_users_order_is_taken_from_the_cart_of_their_newest_session,
    a_reported_order_feeds_the_insights_once,
    an_order_can_be_reported_again_after_a_failure,
    an_invalid_order_is_refused,
);

async fn report(shop: &Shop, order: &Value) -> Answer {
    service(shop, Method::POST, "/orders", Some(order)).await
}

async fn fill(visitor: &mut Visitor<'_>, item: &str, quantity: u32) {
    let answer = visitor.put(&format!("/cart/items/{item}"), &json!({"quantity": quantity})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn cart(visitor: &mut Visitor<'_>) -> Value {
    visitor.get("/cart").await.json["items"].clone()
}

async fn a_reported_order_is_taken_from_the_cart_of_its_session(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    for (item, quantity) in [("mug", 5), ("pan", 1), ("cup", 2)] {
        fill(&mut guest, item, quantity).await;
    }
    let items = json!([{"id": "mug", "quantity": 2}, {"id": "pan", "quantity": 3}, {"id": "bowl", "quantity": 1}]);
    let order = json!({"order_id": "1", "items": items, "token": guest.token()});
    for _ in 0..2 {
        let answer = report(shop, &order).await;
        assert_eq!((answer.status, answer.json), (204, Value::Null));
        let left = json!([{"id": "cup", "quantity": 2}, {"id": "mug", "quantity": 3}]);
        assert_eq!(cart(&mut guest).await, left, "the rest of the cart stays");
    }
    let ttl = shop.store.raw(&["TTL", "order:1"]).await.as_u64().unwrap();
    assert!((1_209_000..=1_209_600).contains(&ttl), "{ttl}");
}

async fn a_users_order_is_taken_from_the_cart_of_their_newest_session(shop: &Shop) {
    let (mut old, mut new) = (log_in(shop, "ada").await, log_in(shop, "ada").await);
    let (mut gone, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    gone.delete("/session").await;
    for visitor in [&mut old, &mut new, &mut bob] {
        fill(visitor, "mug", 2).await;
    }
    let order = json!({"order_id": "1", "items": [{"id": "mug", "quantity": 2}], "user": "ada"});
    assert_eq!(report(shop, &order).await.status, 204);
    assert_eq!(cart(&mut new).await, json!([]));
    for other in [&mut old, &mut bob] {
        assert_eq!(cart(other).await, json!([{"id": "mug", "quantity": 2}]));
    }
    // A user without a session, and no user at all.
    let items = json!([{"id": "mug", "quantity": 1}]);
    for order in [json!({"order_id": "2", "items": items, "user": "eve"}), json!({"order_id": "3", "items": items})] {
        assert_eq!(report(shop, &order).await.status, 204);
    }
}

async fn a_reported_order_feeds_the_insights_once(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    fill(&mut guest, "mug", 1).await;
    shop.store.raw(&["ZADD", &format!("viewed:{}", guest.token()), "1", "lamp", "2", "mug"]).await;
    let items = json!([{"id": "mug", "quantity": 1}, {"id": "pan", "quantity": 3}]);
    let order = json!({"order_id": "1", "items": items, "token": guest.token()});
    for _ in 0..3 {
        assert_eq!(report(shop, &order).await.status, 204);
    }
    let mut anybody = Visitor::new(shop);
    let related = anybody.get("/items/mug/related").await.json;
    assert_eq!(related, json!({"items": [{"id": "pan", "score": 1.0}]}));
    let viewed = anybody.get("/items/lamp/related?by=viewed").await.json;
    let both = json!([{"id": "mug", "share": 1.0}, {"id": "pan", "share": 1.0}]);
    assert_eq!(viewed, json!({"items": both, "orders": 1.0}));
}

async fn an_order_can_be_reported_again_after_a_failure(shop: &Shop) {
    let order = json!({"order_id": "1", "items": [{"id": "mug", "quantity": 1}]});
    shop.store.gateway.set_fault(Some(edgefront_gateway::Fault::Status(500, "{}".to_owned())));
    let answer = report(shop, &order).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"));
    shop.store.gateway.set_fault(None);
    assert_eq!(report(shop, &order).await.status, 204);
    assert_eq!(shop.store.raw(&["ZSCORE", "bought:", "mug"]).await, "1");
}

async fn an_invalid_order_is_refused(shop: &Shop) {
    let items = json!([{"id": "mug", "quantity": 1}]);
    for (order, field) in [
        (json!({}), "order_id"),
        (json!({"order_id": "a b", "items": items}), "order_id"),
        (json!({"order_id": "1"}), "items"),
        (json!({"order_id": "1", "items": []}), "items"),
        (json!({"order_id": "1", "items": [{"id": "mug", "quantity": -1}]}), "quantity"),
        (json!({"order_id": "1", "items": [{"id": "", "quantity": 1}]}), "item"),
        (json!({"order_id": "1", "items": items, "reservation": "mug"}), "reservation"),
        (json!({"order_id": "1", "items": items, "user": "a b"}), "user"),
        (json!({"order_id": "1", "items": items, "token": "x"}), "token"),
        (json!({"order_id": "1", "items": items, "token": "A".repeat(28), "user": "ada"}), "token"),
        (json!({"order_id": "1", "items": items, "total": 1}), "body"),
    ] {
        let answer = report(shop, &order).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{order}");
    }
    assert_eq!(shop.store.raw(&["DBSIZE"]).await, 0);
    let visitor = shop.request(Method::POST, "/_edge/v1/orders").header("sec-fetch-site", "same-origin");
    assert_eq!(visitor.send().await.unwrap().status(), 401);
}
