//! `/healthz`, `/readyz`, `/stats`.

use edgefront_gateway::{
    Fault, Gateway, Options,
    server::{Server, ServerOptions},
};
use http::Method;
use serde_json::json;

use super::{Answer, Visitor, service};
use crate::support::{Reply, Shop, scenarios};

scenarios!(&[];
    liveness_needs_neither_redis_nor_the_origin,
    readiness_names_the_failing_part,
    the_stats_count_the_data_in_redis,
);

async fn get(shop: &Shop, path: &str) -> Answer {
    Answer::read(shop.visit(&format!("/_edge/v1{path}")).await).await
}

async fn liveness_needs_neither_redis_nor_the_origin(shop: &Shop) {
    shop.store.gateway.set_fault(Some(Fault::Refuse));
    shop.origin.answer(Reply::nothing());
    let alive = get(shop, "/healthz").await;
    assert_eq!((alive.status, alive.json), (200, json!({"status": "ok"})));
}

async fn readiness_names_the_failing_part(shop: &Shop) {
    let ready = async |status: u16, [redis, crons, rows, origin]: [&str; 4]| {
        let ready = get(shop, "/readyz").await;
        let parts = json!({"redis": redis, "crons": crons, "rows": rows, "origin": origin, "limits": "none"});
        assert_eq!((ready.status, &ready.json), (status, &parts));
        assert_eq!(ready.header("cache-control"), "private, no-store");
    };
    ready(200, ["ok"; 4]).await;
    shop.origin.answer(Reply::status(404));
    // Any status below 500 shows that the origin answers.
    ready(200, ["ok"; 4]).await;
    shop.store.raw(&["ZADD", "schedule:", "1700000000", "mug"]).await;
    ready(503, ["ok", "ok", "late", "ok"]).await;
    shop.store.raw(&["HSET", "jobs:", "heartbeat", "1700000000.000"]).await;
    shop.origin.answer(Reply::status(500));
    ready(503, ["ok", "silent", "late", "ill"]).await;
    shop.store.gateway.set_fault(Some(Fault::Refuse));
    shop.origin.answer(Reply::nothing());
    ready(503, ["ill", "unknown", "unknown", "ill"]).await;
    let line = shop.logged("origin: no connection").await;
    assert!(line.contains(r#""route":"/_edge/v1/readyz""#), "{line}");
}

async fn the_stats_count_the_data_in_redis(shop: &Shop) {
    Visitor::new(shop).put("/cart/items/mug", &json!({"quantity": 1})).await;
    let long_ago =
        edgefront::schema::token::Token::new(edgefront::ports::time::Timestamp::from_millis(1_700_000_000_000))
            .unwrap();
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
        "keys": shop.store.raw(&["DBSIZE"]).await,
    });
    assert_eq!((stats.status, stats.json), (200, counted));
}

// As with a full Redis, or a read-only token.
#[tokio::test]
async fn a_read_only_redis_is_ill() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let options = Options { read_only_token: Some("reader".to_owned()), ..Options::new(server.url(), "writer") };
    let gateway = Gateway::start(options).await.unwrap();
    let token = |token| [("UPSTASH_REDIS_REST_URL", gateway.url()), ("UPSTASH_REDIS_REST_TOKEN", token)];
    for (token, status, redis) in [(token("writer".to_owned()), 200, "ok"), (token("reader".to_owned()), 503, "ill")] {
        let variables = token.each_ref().map(|(name, value)| (*name, value.as_str()));
        let ready = get(&Shop::native(&variables).await, "/readyz").await;
        assert_eq!((ready.status, &ready.json["redis"], &ready.json["crons"]), (status, &json!(redis), &json!("ok")));
    }
}
