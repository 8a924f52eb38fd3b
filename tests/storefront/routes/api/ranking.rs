//! `/popular`, `/ranking`, and `/views` of pages that another cache served.

use http::Method;
use serde_json::json;

use super::{Answer, Visitor, service, with_json};
use crate::{
    ranking::make_halving_due,
    support::{Shop, scenarios},
};

scenarios!(&[("RANKING_HALF_LIFE", crate::ranking::LONG_HALF_LIFE)];
    the_most_viewed_items_come_first,
    items_show_their_ranks_at_the_last_rescale,
    items_show_their_ranks_an_hour_ago,
    a_reported_view_counts_once_for_a_session,
    a_retried_report_of_a_view_counts_once,
    a_reported_view_cannot_invent_an_item,
);

async fn popular(shop: &Shop, query: &str) -> Answer {
    Answer::to(shop.get(&format!("/_edge/v1/popular{query}"))).await
}

async fn the_most_viewed_items_come_first(shop: &Shop) {
    assert_eq!(popular(shop, "").await.json, json!({"items": []}));
    shop.store.raw(&["ZADD", "viewed:", "-2", "cup", "-7.5", "mug", "-1", "bowl"]).await;
    let before = shop.store.counts().requests;

    let answer = popular(shop, "?limit=2").await;

    let items = json!([{"id": "mug", "rank": 0, "views": 7.5}, {"id": "cup", "rank": 1, "views": 2.0}]);
    assert_eq!((answer.status, &answer.json), (200, &json!({"items": items})));
    assert_eq!(answer.header("cache-control"), "public, max-age=10");
    assert_eq!(shop.store.counts().requests - before, 1);
    for limit in ["0", "101", "-1", "1.5", "x", "", "2&limit=3"] {
        let answer = popular(shop, &format!("?limit={limit}")).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("limit")), "{limit}");
    }
}

async fn items_show_their_ranks_at_the_last_rescale(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-8", "cup", "-4", "mug", "-2", "bowl"]).await;
    make_halving_due(&shop.store).await;
    assert_eq!(service(shop, Method::POST, "/jobs/rescale", None).await.json["done"]["halvings"], 1);
    shop.store.raw(&["ZADD", "viewed:", "-9", "bowl", "-1", "lamp"]).await;
    let before = shop.store.counts();

    let answer = service(shop, Method::GET, "/ranking", None).await;

    let after = shop.store.counts();
    assert_eq!((after.requests - before.requests, after.commands - before.commands), (1, 2));
    let moved = |id, rank, views, before| json!({"id": id, "rank": rank, "views": views, "before": before});
    let items = json!([
        moved("bowl", 0, 9.0, json!(2)),
        moved("cup", 1, 4.0, json!(0)),
        moved("mug", 2, 2.0, json!(1)),
        moved("lamp", 3, 1.0, json!(null)),
    ]);
    let expected = json!({"items": items, "since": null, "item_route": "/products/{item}"});
    assert_eq!((answer.status, answer.json), (200, expected));
    for (query, field) in [("limit=0", "limit"), ("since=day", "since")] {
        assert_eq!(service(shop, Method::GET, &format!("/ranking?{query}"), None).await.json["field"], field);
    }
}

async fn items_show_their_ranks_an_hour_ago(shop: &Shop) {
    let hour = async || service(shop, Method::GET, "/ranking?since=hour", None).await.json;
    let rescale = async || {
        assert_eq!(service(shop, Method::POST, "/jobs/rescale", None).await.status, 200);
        let entries = shop.store.raw(&["LRANGE", "ranked:hour", "0", "-1"]).await;
        entries.as_array().expect("a list").len()
    };
    shop.store.raw(&["ZADD", "viewed:", "-8", "cup", "-4", "mug"]).await;
    assert_eq!(hour().await["since"], json!(null), "nothing is remembered yet");
    assert_eq!((rescale().await, rescale().await), (1, 1), "a second run adds nothing");
    let since = hour().await["since"].as_u64().expect("seconds");

    // The ranking of 62, 58 and 54 minutes ago, and other code's.
    shop.store.raw(&["DEL", "ranked:hour"]).await;
    for (minutes, items) in [(62, r#"["old"]"#), (60, r#"["mug","cup"]"#), (54, r#"["cup","mug"]"#)] {
        let entry = format!("{}{items}", since - minutes * 60);
        shop.store.raw(&["LPUSH", "ranked:hour", &entry]).await;
    }
    assert_eq!(rescale().await, 3, "a new entry, and one without the entry that is too old");

    let before = shop.store.counts();
    let moved = hour().await;
    let after = shop.store.counts();
    assert_eq!((after.requests - before.requests, after.commands - before.commands), (1, 2));
    let ranks: Vec<_> = moved["items"].as_array().expect("a list").iter().map(|item| &item["before"]).collect();
    assert_eq!(ranks, [&json!(1), &json!(0)], "{moved}");
    assert_eq!(moved["since"], json!(since - 3600));
    shop.store.raw(&["LSET", "ranked:hour", "-1", "nonsense"]).await;
    assert_eq!(hour().await["since"], json!(null));
}

async fn a_reported_view_counts_once_for_a_session(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    for _ in 0..3 {
        let answer = guest.post("/views", &json!({"item": "mug"})).await;
        assert_eq!((answer.status, answer.header("cache-control")), (202, "private, no-store"));
        assert_eq!(shop.blocking_requests().await, 0);
        shop.settled().await;
    }
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-2");
    assert_eq!(guest.get("/recent").await.json, json!({"items": ["mug"]}));
    // Views without a session are told apart by their network only.
    for (mut visitor, network) in
        [(Visitor::new(shop), "203.0.113.1"), (Visitor::with_cookie(shop, "__Host-session=forged"), "203.0.113.2")]
    {
        let report = visitor.request(Method::POST, "/views").header("cf-connecting-ip", network);
        visitor.send(with_json(report, &json!({"item": "mug"}))).await;
    }
    shop.settled().await;
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-4");
}

async fn a_retried_report_of_a_view_counts_once(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
    let mut nobody = Visitor::new(shop);
    // Views of one network would count once anyway.
    for (number, key) in ["first", "first", "second", "first"].into_iter().enumerate() {
        let report = nobody.request(Method::POST, "/views").header("idempotency-key", key);
        let report = report.header("cf-connecting-ip", format!("203.0.113.{number}"));
        assert_eq!(nobody.send(with_json(report, &json!({"item": "mug"}))).await.status, 202);
        shop.settled().await;
    }
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-3");
}

async fn a_reported_view_cannot_invent_an_item(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    assert_eq!(guest.post("/views", &json!({"item": "made-up"})).await.status, 202);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    assert_eq!(guest.post("/views", &json!({"item": "made-up"})).await.status, 202);
    shop.settled().await;
    assert_eq!(shop.store.raw(&["ZCARD", "viewed:"]).await, 0);
    for item in [json!(""), json!("a:b"), json!(7.5)] {
        assert_eq!(guest.post("/views", &json!({"item": item})).await.json["field"], "item", "{item}");
    }
}
