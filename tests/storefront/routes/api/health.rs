//! `/healthz`, `/readyz`, `/stats`.

use edgefront_gateway::{
    Fault, Gateway, Options,
    server::{Server, ServerOptions},
};
use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, service};
use crate::support::{Reply, Shop, scenarios};

scenarios!(&[];
    liveness_needs_neither_redis_nor_the_origin,
    readiness_names_the_failing_part,
    an_old_failure_of_the_rows_is_over,
    the_stats_count_the_data_in_redis,
);

async fn get(shop: &Shop, path: &str) -> Answer {
    Answer::to(shop.get(&format!("/_edge/v1{path}"))).await
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
        let parts =
            json!({"redis": redis, "crons": crons, "rows": rows, "origin": origin, "limits": "none", "views": "ok"});
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

async fn an_old_failure_of_the_rows_is_over(shop: &Shop) {
    let report = |finished: u64, error: &str, public: &Value| {
        let mut report = json!({"started": 0.0, "finished": finished, "error": error, "done": {"failed": 1}});
        if !public.is_null() {
            report["public_error"] = public.clone();
        }
        report.to_string()
    };
    let now = edgefront_seconds();
    for (finished, error, status, cause) in [
        (now - 160, "ROWS_URL answered with status 403", 200, json!(null)),
        (now - 100, "ROWS_URL answered with status 403", 503, json!("ROWS_URL answered with status 403")),
        (now, "database: no such column: ada@example.org", 503, json!("database")),
        // A report of an older release.
        (now, "database: no such column: bob@example.org", 503, json!(null)),
    ] {
        shop.store.raw(&["HSET", "jobs:", "refresh-rows", &report(finished, error, &cause)]).await;
        let ready = get(shop, "/readyz").await;
        assert_eq!((ready.status, &ready.json["rows_cause"]), (status, &cause), "{error}");
        assert_eq!(ready.json["rows"], if status == 200 { "ok" } else { "failing" });
    }
    shop.logged("rows: database: no such column").await;
}

mod rows {
    use super::*;

    scenarios!(&[("ROWS_URL", "{origin}/rows"), ("ROW_MEMORY", "0"), ("SUBREQUESTS", "10")];
        a_row_source_that_fails_is_reported_until_it_answers,
    );
}

async fn a_row_source_that_fails_is_reported_until_it_answers(shop: &Shop) {
    // As an origin that refuses requests without the key.
    shop.origin
        .answer_with(|asked| if asked.path.starts_with("/rows") { Reply::status(403) } else { Reply::html("x") });
    service(shop, Method::PUT, "/rows/mug/schedule", Some(&json!({"every": 3600}))).await;
    shop.store.raw(&["ZADD", "schedule:", "1700000000", "mug"]).await;
    service(shop, Method::POST, "/jobs/refresh-rows", Some(&json!({}))).await;

    let ready = get(shop, "/readyz").await;

    assert_eq!((ready.status, &ready.json["rows"], &ready.json["redis"]), (503, &json!("failing"), &json!("ok")));
    assert_eq!(ready.json["rows_cause"], "ROWS_URL answered with status 403");
    let line = shop.logged("rows: ROWS_URL answered with status 403").await;
    assert!(line.contains(r#""route":"/_edge/v1/readyz""#), "{line}");

    shop.origin.answer(Reply::html(r#"[{"id": "mug", "stock": 1}]"#));
    shop.store.raw(&["ZADD", "schedule:", "1700000000", "mug"]).await;
    service(shop, Method::POST, "/jobs/refresh-rows", Some(&json!({}))).await;
    let ready = get(shop, "/readyz").await;
    assert_eq!((ready.status, &ready.json["rows"], &ready.json["rows_cause"]), (200, &json!("ok"), &json!(null)));
}

/// The Unix second of now.
fn edgefront_seconds() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_secs()
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
        "earlier_sessions": 0,
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
