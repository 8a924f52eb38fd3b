//! `/purge` and `/cache`: a service purges pages and asks about their caching.

use http::Method;
use serde_json::{Value, json};

use super::service;
use crate::support::{Reply, Shop, scenarios};

scenarios!(&[("CART_ROUTES", "/cart, /orders/*"), ("HOLES", "/ #account <- user")];
    a_page_is_explained_before_and_after_it_is_stored,
    the_explanation_names_the_real_reason,
    a_url_of_another_host_is_no_page,
    a_purge_removes_the_pages_that_it_names,
    an_invalid_purge_is_refused,
);

async fn explain(shop: &Shop, url: &str) -> Value {
    let answer = service(shop, Method::GET, &format!("/cache?url={url}"), None).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"), "{answer:?}");
    answer.json
}

async fn store(shop: &Shop, item: &str) {
    shop.store.raw(&["ZADD", "viewed:", "-9", item]).await;
    assert_eq!(shop.visit(&format!("/products/{item}")).await.status(), 200);
    shop.settled().await;
    assert_eq!(explain(shop, &format!("/products/{item}")).await["why"], "fresh", "{item}");
}

async fn a_page_is_explained_before_and_after_it_is_stored(shop: &Shop) {
    let path = "/products/mug";
    let never_viewed = explain(shop, path).await;
    assert_eq!((&never_viewed["cacheable"], &never_viewed["rank"]), (&json!(false), &Value::Null));
    shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
    let popular = explain(shop, path).await;
    assert_eq!((&popular["cacheable"], &popular["why"], &popular["rank"]), (&json!(true), &json!("absent"), &json!(0)));

    store(shop, "mug").await;

    let stored = explain(shop, &format!("{}{path}?utm_source=mail", shop.url)).await;
    assert_eq!((&stored["url"], &stored["item"]), (&json!(format!("{}{path}", shop.url)), &json!("mug")));
    assert!(stored["key"].as_str().is_some_and(|key| key.starts_with("cache:")), "{stored}");
    assert!(stored["ttl"].as_i64().is_some_and(|ttl| (1..=300).contains(&ttl)), "{stored}");
    for dynamic in ["/about", "/products/mug%3F_=1", "/products/mug%3Fcolour=red"] {
        assert_eq!(explain(shop, dynamic).await["cacheable"], json!(false), "{dynamic}");
    }
    assert_eq!(service(shop, Method::GET, "/cache", None).await.json["field"], "url");
    assert_eq!(service(shop, Method::GET, "/cache?url=/&url=/", None).await.json["field"], "url");
}

/// Redis knows nothing of these pages: the origin's response decides.
async fn the_explanation_names_the_real_reason(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/account" => Reply::html("Ada").header("cache-control", "private, no-store"),
        "/sale" => Reply::html("sale").header("cache-control", "public, max-age=60"),
        "/products/mug" => Reply::html("mug").header("set-cookie", "basket=secret"),
        "/missing" | "/products/missing" => Reply::status(404),
        "/old" => Reply::status(301).header("location", "/new"),
        _ => Reply::html("page"),
    });
    shop.store.load_scripts().await;
    let before = (shop.store.counts().requests, shop.origin.count());
    let reasons = [
        ("/account", false, "private", "cache-control: private, no-store"),
        ("/sale", true, "absent", ""),
        ("/products/mug", false, "set-cookie", "set-cookie: basket"),
        ("/missing", false, "status", "status 404"),
        ("/products/missing", false, "status", "status 404"),
        ("/old", false, "status", "status 301"),
        ("/about", false, "no-item", "the response states no freshness"),
        ("/products/cup", false, "unpopular", ""),
        ("/cart", false, "personal", "CART_ROUTES"),
        ("/orders/7", false, "personal", "CART_ROUTES"),
    ];
    for (path, cacheable, why, cause) in reasons {
        let explained = explain(shop, path).await;
        let found = (&explained["cacheable"], &explained["why"], &explained["cause"]);
        assert_eq!(found, (&json!(cacheable), &json!(why), &json!(cause)), "{path}");
    }
    let after = (shop.store.counts().requests, shop.origin.count());
    assert_eq!(
        (after.0 - before.0, after.1 - before.1),
        (10, 8),
        "one request each, and none to the origin for a cart or an order"
    );
    assert_eq!(explain(shop, "/sale").await["why"], "absent", "nothing was stored");
    // A visit leaves a note that the page lacks popularity. The status is the reason that helps.
    for (path, cause) in [("/missing", "status 404"), ("/old", "status 301")] {
        shop.visit(path).await;
        shop.settled().await;
        let explained = explain(shop, path).await;
        assert_eq!((&explained["why"], &explained["cause"]), (&json!("status"), &json!(cause)), "{path}");
    }
}

async fn a_url_of_another_host_is_no_page(shop: &Shop) {
    for url in ["https://other.example/products/mug", "mug", "data:mug", "/_edge/v1/stats", "/_edge"] {
        let explained = explain(shop, url).await;
        assert_eq!((&explained["cacheable"], &explained["why"]), (&json!(false), &json!("no-page")), "{url}");
        assert_eq!(explained["rules"]["holes"], json!([]), "the home page has a hole, {url} has none");
    }
    assert_eq!((shop.store.counts().requests, shop.origin.count()), (0, 0));
}

async fn a_purge_removes_the_pages_that_it_names(shop: &Shop) {
    shop.origin.answer(Reply::html("a mug").header("edge-tags", "kitchen, sale"));
    let url = format!("{}/products/mug", shop.url);
    for (purge, is_purged) in [
        (json!({"items": ["mug"]}), true),
        (json!({"urls": [url]}), true),
        (json!({"urls": ["/products/mug?utm_source=mail"]}), true),
        (json!({"tags": ["garden", "sale"]}), true),
        (json!({"all": true}), true),
        (json!({"items": ["cup"], "tags": ["garden"], "urls": ["/products/cup"]}), false),
    ] {
        store(shop, "mug").await;
        let answer = service(shop, Method::POST, "/purge", Some(&purge)).await;
        assert_eq!((answer.status, &answer.json["skipped"]), (200, &json!([])), "{purge}: {answer:?}");
        let why = if is_purged { "absent" } else { "fresh" };
        assert_eq!(explain(shop, "/products/mug").await["why"], why, "{purge}");
    }
    let purge = json!({"items": ["mug"], "urls": ["/about?_=1"]});
    let answer = service(shop, Method::POST, "/purge", Some(&purge)).await;
    assert_eq!(answer.json["purged"], 1);
    assert_eq!(answer.json["skipped"][0]["url"], "/about?_=1", "{answer:?}");
    assert_eq!(explain(shop, "/products/mug").await["why"], "absent");
}

async fn an_invalid_purge_is_refused(shop: &Shop) {
    store(shop, "mug").await;
    for (purge, field) in [
        (json!({}), "body"),
        (json!({"items": []}), "body"),
        (json!({"items": "mug"}), "items"),
        (json!({"items": ["mug", "a:b"]}), "items"),
        (json!({"tags": ["a,b"]}), "tags"),
        (json!({"urls": [7]}), "urls"),
        (json!({"all": false}), "all"),
        (json!({"all": true, "soft": 1}), "soft"),
        (json!({"soft": true}), "body"),
        (json!({"all": true, "everything": true}), "body"),
    ] {
        let answer = service(shop, Method::POST, "/purge", Some(&purge)).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{purge}");
    }
    assert_eq!(explain(shop, "/products/mug").await["why"], "fresh");
}
