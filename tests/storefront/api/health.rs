//! `/healthz`, `/readyz`, `/stats`.

use edgefront_gateway::Fault;
use http::Method;
use serde_json::json;

use super::{Answer, Visitor, service};
use crate::support::{Shop, scenarios};

scenarios!(&[];
    alive_is_whoever_answers_and_ready_is_who_has_redis_and_crons,
    the_stats_count_what_there_is,
);

async fn get(shop: &Shop, path: &str) -> Answer {
    Answer::read(shop.visit(&format!("/_edge/v1{path}")).await).await
}

async fn alive_is_whoever_answers_and_ready_is_who_has_redis_and_crons(shop: &Shop) {
    let ready = get(shop, "/readyz").await;
    assert_eq!((ready.status, &ready.json), (200, &json!({"redis": "ok", "crons": "ok"})), "a new shop is ready");
    shop.store.raw(&["HSET", "jobs:", "heartbeat", "1700000000.000"]).await;
    let ready = get(shop, "/readyz").await;
    assert_eq!((ready.status, &ready.json["crons"]), (503, &json!("silent")));
    assert_eq!(ready.header("cache-control"), "private, no-store");

    shop.store.gateway.set_fault(Some(Fault::Refuse));

    assert_eq!(get(shop, "/readyz").await.status, 503);
    let alive = get(shop, "/healthz").await;
    assert_eq!((alive.status, alive.json), (200, json!({"status": "ok"})));
}

async fn the_stats_count_what_there_is(shop: &Shop) {
    Visitor::new(shop).put("/cart/items/mug", &json!({"quantity": 1})).await;
    let long_ago = edgefront::ids::Token::new(edgefront::time::Timestamp::from_millis(1_700_000_000_000)).unwrap();
    shop.store.raw(&["ZADD", "recent:", "1700000000", long_ago.as_str()]).await;
    shop.store.raw(&["ZADD", "viewed:", "-2", "cup", "-7.5", "mug"]).await;
    let before = shop.store.counts().requests;

    let stats = service(shop, Method::GET, "/stats", None).await;

    assert_eq!(shop.store.counts().requests - before, 1);
    let counted = json!({
        "sessions": 2,
        "online": 1,
        "session_limit": 10_000_000,
        "ranked_items": 2,
        "scheduled_rows": 0,
        "abandoned_carts": 0,
        "page_bytes": 0,
        "page_limit": 67_108_864,
        // login:, recent:, cart:{token}, viewed:
        "keys": 4,
    });
    assert_eq!((stats.status, stats.json), (200, counted));
}
