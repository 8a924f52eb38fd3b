//! The isolate's copies of pages: their cost, and the reach of purges.

use std::time::Duration;

use edgefront::page_cache::{Purge, PurgeMode, purge};
use futures_util::future::join_all;
use http::Method;
use serde_json::json;

use super::{is_hit, purge_all, rfc9111::fresh, store_page};
use crate::{
    routes::api::service,
    support::{Reply, Shop, eventually, scenarios},
};

scenarios! {
    &[("PAGE_MEMORY", "3600"), ("VIEW_WINDOW", "3600")];
    a_page_that_this_isolate_holds_costs_no_request_of_a_visitor,
    a_purge_takes_effect_at_once_in_the_isolate_that_received_it,
    a_write_takes_effect_at_once_in_the_isolate_that_forwarded_it,
    concurrent_views_share_requests_to_redis,
    an_expired_copy_is_not_served,
    a_page_without_a_body_is_stored_and_served,
}

/// A short `PAGE_MEMORY`, and purges that this isolate does not receive.
mod elsewhere {
    use super::{Duration, Purge, PurgeMode, Shop, eventually, is_hit, purge, scenarios, store_page};

    scenarios! {
        &[("PAGE_MEMORY", "2")];
        a_purge_elsewhere_is_seen_within_the_time_of_the_memory,
        visits_of_a_busy_page_never_wait_for_redis,
    }

    async fn a_purge_elsewhere_is_seen_within_the_time_of_the_memory(shop: &Shop) {
        store_page(shop, "mug").await;
        assert!(is_hit(&shop.visit("/products/mug").await));
        purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
        eventually("the purge is seen", async || {
            tokio::time::sleep(Duration::from_millis(100)).await;
            !is_hit(&shop.visit("/products/mug").await)
        })
        .await;
    }

    async fn visits_of_a_busy_page_never_wait_for_redis(shop: &Shop) {
        store_page(shop, "mug").await;
        // Redis knows the script after this visit.
        shop.visit("/products/mug").await;
        shop.settled().await;
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(is_hit(&shop.visit("/products/mug").await));
            assert_eq!(shop.blocking_requests().await, 0);
            // Requests in the background of one response must not count as blocking requests of the next.
            shop.settled().await;
        }
    }
}

async fn a_page_that_this_isolate_holds_costs_no_request_of_a_visitor(shop: &Shop) {
    store_page(shop, "mug").await;
    let logged_in = service(shop, Method::POST, "/sessions", Some(&json!({"user": "ada"}))).await;
    let cookie = logged_in.json["cookie"].as_str().unwrap().to_owned();
    for cookie in ["", cookie.as_str(), "_ga=GA1.1"] {
        for headers in [&[("x-own", "1")][..], &[("range", "bytes=0-3")], &[]] {
            let mut request = shop.get("/products/mug").header("cookie", cookie);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let answer = request.send().await.unwrap();
            assert!(is_hit(&answer), "{cookie} {headers:?}");
            assert_eq!(shop.blocking_requests().await, 0, "{cookie} {headers:?}");
            shop.settled().await;
        }
    }
    assert_eq!(shop.origin.count(), 1);
}

async fn a_purge_takes_effect_at_once_in_the_isolate_that_received_it(shop: &Shop) {
    for soft in [false, true] {
        shop.store.raw(&["FLUSHDB"]).await;
        purge_all(shop).await;
        store_page(shop, "mug").await;
        assert!(is_hit(&shop.visit("/products/mug").await));
        shop.settled().await;
        let before = shop.origin.count();
        let purged = service(shop, Method::POST, "/purge", Some(&json!({"items": ["mug"], "soft": soft}))).await;
        assert_eq!(purged.status, 200);
        assert_eq!(is_hit(&shop.visit("/products/mug").await), soft);
        shop.settled().await;
        assert_eq!(shop.origin.count() - before, 1, "rendered anew, soft: {soft}");
    }
}

async fn a_write_takes_effect_at_once_in_the_isolate_that_forwarded_it(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    shop.visit("/page").await;
    shop.settled().await;
    assert!(is_hit(&shop.visit("/page").await));
    shop.request(Method::POST, "/page").body("x").send().await.unwrap();
    assert!(!is_hit(&shop.visit("/page").await));
}

async fn concurrent_views_share_requests_to_redis(shop: &Shop) {
    const VIEWS: usize = 200;
    store_page(shop, "mug").await;
    shop.store.raw(&["ZADD", "viewed:", "-1000", "mug"]).await;
    let mut cookies = Vec::new();
    for number in 0..=VIEWS {
        let user = json!({"user": format!("user-{number}")});
        let logged_in = service(shop, Method::POST, "/sessions", Some(&user)).await;
        cookies.push(logged_in.json["cookie"].as_str().unwrap().to_owned());
    }
    let view = |cookie: &String| shop.get("/products/mug").header("cookie", cookie).send();
    // Redis knows all scripts after this visit.
    view(&cookies.pop().unwrap()).await.unwrap();
    shop.settled().await;
    let before = shop.store.counts().requests;
    for answer in join_all(cookies.iter().map(view)).await {
        assert!(is_hit(&answer.unwrap()));
    }
    shop.settled().await;
    let requests = shop.store.counts().requests - before;
    assert!(requests < VIEWS as u64 / 2, "{requests} requests for {VIEWS} views");
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, format!("-{}", 1001 + VIEWS));

    // A repeated view changes nothing in Redis.
    let before = shop.store.counts().requests;
    view(&cookies[0]).await.unwrap();
    shop.settled().await;
    assert_eq!(shop.store.counts().requests, before);
}

async fn an_expired_copy_is_not_served(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=1"));
    shop.visit("/page").await;
    shop.settled().await;
    assert!(is_hit(&shop.visit("/page").await));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(!is_hit(&shop.visit("/page").await));
    assert_eq!(shop.origin.count(), 2);
}

async fn a_page_without_a_body_is_stored_and_served(shop: &Shop) {
    shop.origin.answer(Reply::status(204).header("cache-control", "max-age=60"));
    for is_stored in [false, true, true] {
        let answer = shop.visit("/nothing").await;
        assert_eq!((answer.status().as_u16(), is_hit(&answer)), (204, is_stored));
        shop.settled().await;
    }
}
