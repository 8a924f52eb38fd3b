//! The requests to Redis before the responses to services: the table in `docs/api.md`.

use http::Method;
use serde_json::json;

use super::{log_in, service};
use crate::support::{Reply, SERVICE_KEY, Shop, scenarios};

scenarios!(&[("ROWS_URL", "{origin}/rows")];
    calls_of_services_cost_the_documented_redis_requests,
);

async fn calls_of_services_cost_the_documented_redis_requests(shop: &Shop) {
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    shop.origin.answer(Reply::html(r#"[{"id":"mug"}]"#));
    shop.store.load_scripts().await;
    let apart = shop.store.apart();
    let items = json!([{"id": "mug", "quantity": 1}]);
    let (mut measured, mut documented) = (Vec::new(), Vec::new());
    log_in(shop, "ada").await;
    let bob = log_in(shop, "bob").await.cookie.expect("a cookie");
    let token = bob.trim_start_matches("__Host-session=").split('.').next();
    for (method, path, body, requests) in [
        (&post, "/sessions", Some(json!({"user": "eve"})), 1),
        (&get, "/users/ada/sessions", None, 1),
        (&post, "/orders", Some(json!({"order_id": "1", "items": items})), 1),
        (&post, "/orders", Some(json!({"order_id": "2", "items": items, "token": token})), 2 + apart),
        (&post, "/orders", Some(json!({"order_id": "3", "items": items, "user": "ada"})), 3 + apart),
        (&delete, "/users/ada/sessions", None, 2),
        (&put, "/rows/mug/schedule", Some(json!({"every": 60})), 3),
        (&put, "/rows/mug/schedule", Some(json!({"every": 0})), 1),
        (&put, "/rows/mug/schedule", Some(json!({"every": 60})), 3),
        (&get, "/rows/mug/schedule", None, 1),
        (&get, "/rows/mug", None, 1),
        (&get, "/schedule", None, 2),
        (&get, "/traffic", None, 2),
        (&get, "/traffic?minutes=1440", None, 2),
        (&get, "/traffic?minutes=10080", None, 3),
        (&get, "/stats", None, 1),
        (&get, "/ranking", None, 1),
        (&get, "/jobs", None, 1),
        (&get, "/readyz", None, 2),
        (&get, "/abandoned", None, 1),
        (&get, "/cache?url=/products/mug", None, 1),
        (&post, "/purge", Some(json!({"all": true})), 1),
        (&delete, "/users/bob/sessions", None, 2),
    ] {
        let answer = service(shop, method.clone(), path, body.as_ref()).await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        measured.push((method, path, shop.blocking_requests().await));
        documented.push((method, path, requests));
        shop.settled().await;
    }
    assert_eq!(measured, documented);
    let metrics = shop.get("/_edge/v1/metrics").bearer_auth(SERVICE_KEY).send().await.unwrap();
    assert_eq!(metrics.status(), 200);
    assert!((1..=4).contains(&shop.blocking_requests().await), "reads at the same time share a request");
}
