//! The location cache: Redis sends a page to the isolates of one location once. The tests run in workerd, because the
//! native shop has no such cache.
//!
//! `a` and `b` are isolates of one location. A third isolate, at another location, stores the pages.

use edgefront::page_cache::{Purge, PurgeMode, purge};
use http::Method;
use serde_json::{Value, json};

use super::{cache_status, header, is_hit, make_popular, rfc9111::fresh, stored_pages};
use crate::{
    routes::api::service,
    support::{Asked, Reply, Shop},
};

/// The size of a page, bytes.
const SIZE: usize = 100_000;
/// The most bytes from Redis for a lookup without the page.
const FEW: u64 = 2_000;

/// A shop at another location, whose origin has large pages.
async fn shop(variables: &[(&str, &str)]) -> Shop {
    let shop = Shop::workerd(variables).await;
    shop.origin.answer(fresh(&"x".repeat(SIZE), "public, max-age=600"));
    shop
}

/// A request to the host that all locations share, so that they have the same pages.
fn at_shop(shop: &Shop, method: Method, path: &str) -> reqwest::RequestBuilder {
    shop.request(method, path).header("host", "shop.example")
}

async fn store_page(shop: &Shop) {
    make_popular(shop, "mug").await;
    assert_eq!(cache_status(&visit(shop, &[]).await.0), "edgefront; fwd=uri-miss; stored");
}

/// The response to a visit with these headers, and the bytes that came from Redis for it.
async fn visit(shop: &Shop, headers: &[(&str, &str)]) -> (reqwest::Response, u64) {
    let before = shop.received_bytes().await;
    let mut request = at_shop(shop, Method::GET, "/products/mug");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.expect("an answer");
    shop.settled().await;
    (answer, shop.received_bytes().await - before)
}

#[tokio::test]
async fn a_page_crosses_from_redis_to_a_location_once() {
    let shop = shop(&[]).await;
    store_page(&shop).await;
    let [a, b] = shop.isolates_elsewhere(&[]).await;
    let (first, bytes) = visit(&a, &[]).await;
    assert!(is_hit(&first) && bytes > SIZE as u64, "{bytes}");
    let (second, bytes) = visit(&b, &[]).await;
    assert!(is_hit(&second) && bytes < FEW, "{bytes}");
    assert_eq!(first.text().await.unwrap(), second.text().await.unwrap());
    assert_eq!(b.blocking_requests().await, 1, "the page waits for one request to Redis");
    // From now on, the isolate has a copy.
    let (third, bytes) = visit(&b, &[]).await;
    assert!(is_hit(&third) && b.blocking_requests().await == 0, "{bytes}");
}

#[tokio::test]
async fn a_page_that_one_isolate_renders_is_there_for_the_others() {
    let shop = shop(&[]).await;
    let [a, b] = shop.isolates_elsewhere(&[]).await;
    store_page(&a).await;
    let (answer, bytes) = visit(&b, &[]).await;
    assert!(is_hit(&answer) && bytes < FEW, "{bytes}");
    assert_eq!(shop.origin.count(), 1);
}

#[tokio::test]
async fn an_isolate_whose_copy_is_too_old_to_answer_gets_no_body_from_redis() {
    let shop = shop(&[]).await;
    store_page(&shop).await;
    let [a] = shop.isolates_elsewhere(&[("PAGE_MEMORY", "0"), ("PAGE_LOCATION_MS", "0")]).await;
    let (answer, bytes) = visit(&a, &[]).await;
    assert!(is_hit(&answer) && bytes > SIZE as u64, "{bytes}");
    let (answer, bytes) = visit(&a, &[]).await;
    assert!(is_hit(&answer) && bytes < FEW, "{bytes}");
    assert_eq!(answer.text().await.unwrap().len(), SIZE);
}

#[tokio::test]
async fn the_successor_of_a_page_crosses_once_too() {
    let shop = shop(&[]).await;
    let ask_redis = [("PAGE_MEMORY", "0")];
    let [a, b] = shop.isolates_elsewhere(&ask_redis).await;
    store_page(&a).await;
    assert!(is_hit(&visit(&b, &[]).await.0));
    // The origin's clock is behind: the response is 700 s old on arrival.
    shop.origin.answer(fresh(&"y".repeat(SIZE), "public, max-age=6000"));
    // The page is no longer fresh.
    for isolate in [&a, &b] {
        isolate.set_clock(700_000).await;
    }
    visit(&a, &[]).await;
    let (answer, bytes) = visit(&b, &[]).await;
    assert!(answer.text().await.unwrap().starts_with('y') && bytes < FEW, "{bytes}");
    assert_eq!(shop.origin.count(), 2);
}

#[tokio::test]
async fn a_purge_voids_the_page_in_the_location() {
    let shop = shop(&[]).await;
    let [a, b] = shop.isolates_elsewhere(&[("PAGE_MEMORY", "0")]).await;
    store_page(&a).await;
    assert!(is_hit(&visit(&b, &[]).await.0));
    purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    shop.origin.answer(fresh("new", "public, max-age=600"));
    let (answer, _) = visit(&b, &[]).await;
    assert_eq!(
        (header(&answer, "cache-status").as_str(), answer.text().await.unwrap().as_str()),
        ("edgefront; fwd=uri-miss; stored", "new")
    );
    let (answer, bytes) = visit(&a, &[]).await;
    assert!(is_hit(&answer) && answer.text().await.unwrap() == "new" && bytes < FEW, "{bytes}");
}

#[tokio::test]
async fn a_write_to_a_page_voids_it_in_the_location() {
    let shop = shop(&[]).await;
    let [a, b] = shop.isolates_elsewhere(&[("PAGE_MEMORY", "0")]).await;
    store_page(&a).await;
    assert!(is_hit(&visit(&b, &[]).await.0));
    shop.origin.answer(Reply::html("written"));
    assert_eq!(at_shop(&a, Method::POST, "/products/mug").send().await.unwrap().status(), 200);
    a.settled().await;
    let (answer, _) = visit(&b, &[]).await;
    assert_eq!(answer.text().await.unwrap(), "written");
}

#[tokio::test]
async fn a_lost_entry_comes_from_redis_again() {
    let shop = shop(&[]).await;
    let [a, b] = shop.isolates_elsewhere(&[]).await;
    store_page(&a).await;
    b.set_cache_fault("lost").await;
    let (answer, bytes) = visit(&b, &[]).await;
    assert!(is_hit(&answer) && bytes > SIZE as u64, "{bytes}");
}

#[tokio::test]
async fn a_broken_cache_disturbs_nobody_and_is_counted() {
    let shop = shop(&[]).await;
    let [a] = shop.isolates_elsewhere(&[("TRAFFIC_INTERVAL", "1"), ("PAGE_MEMORY", "0")]).await;
    a.set_cache_fault("broken").await;
    store_page(&a).await;
    for item in ["cup", "pan", "mug"] {
        make_popular(&a, item).await;
        let answer = at_shop(&a, Method::GET, &format!("/products/{item}")).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().len()), (200, SIZE));
        a.settled().await;
    }
    crate::support::eventually("the failures are counted", async || {
        visit(&a, &[]).await;
        let traffic = service(&a, Method::GET, "/traffic?minutes=5", None).await;
        traffic.json["totals"]["location_failures"].as_u64() >= Some(3)
    })
    .await;
    assert!(a.logs().iter().any(|line| line.contains("is not used for a minute")));
}

#[tokio::test]
async fn a_request_gets_its_variant_from_the_location() {
    let shop = shop(&[]).await;
    shop.origin.answer_with(|asked: &Asked| {
        let language = asked.header("accept-language").to_owned();
        fresh(&language.repeat(SIZE / 2), "public, max-age=600").header("vary", "Accept-Language")
    });
    make_popular(&shop, "mug").await;
    let [a, b] = shop.isolates_elsewhere(&[]).await;
    for language in ["de", "en"] {
        visit(&a, &[("accept-language", language)]).await;
    }
    for language in ["de", "en"] {
        let (answer, bytes) = visit(&b, &[("accept-language", language)]).await;
        assert!(is_hit(&answer) && bytes < FEW, "{bytes}");
        assert_eq!(answer.text().await.unwrap(), language.repeat(SIZE / 2));
    }
    let (answer, _) = visit(&b, &[("accept-language", "fr")]).await;
    assert_eq!(answer.text().await.unwrap(), "fr".repeat(SIZE / 2));
}

#[tokio::test]
async fn conditions_and_ranges_apply_to_the_location_s_page() {
    let shop = shop(&[]).await;
    let [a, b, c] = shop.isolates_elsewhere(&[]).await;
    store_page(&a).await;
    let etag = header(&visit(&a, &[]).await.0, "etag");
    let (answer, bytes) = visit(&b, &[("if-none-match", &etag)]).await;
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().len()), (304, 0));
    assert!(bytes < FEW, "{bytes}");
    let (answer, bytes) = visit(&c, &[("range", "bytes=10-19")]).await;
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (206, "xxxxxxxxxx"));
    assert!(bytes < FEW, "{bytes}");
}

#[tokio::test]
async fn the_location_holds_the_shared_page_and_each_visitor_gets_own_parts() {
    let variables = [("HOLES", "/products/* #mini <- /basket"), ("COOKIES_HOLES", "sid"), ("HOLES_WAIT_MS", "20000")];
    let shop = Shop::workerd(&variables).await;
    shop.origin.answer_with(|asked: &Asked| {
        let name = asked.header("cookie").strip_prefix("sid=").unwrap_or("guest").to_owned();
        Reply::html(format!("<div id=mini>{name}</div>")).header("vary", "Cookie")
    });
    make_popular(&shop, "mug").await;
    let [a, b] = shop.isolates_elsewhere(&variables).await;
    visit(&a, &[]).await;
    for name in ["ada", "bob"] {
        for isolate in [&b, &a] {
            let (answer, _) = visit(isolate, &[("cookie", &format!("sid={name}"))]).await;
            assert!(is_hit(&answer));
            assert_eq!(answer.text().await.unwrap(), format!("<div id=mini>{name}</div>"));
        }
    }
    // The location cache has the entries of Redis under the same names.
    let page = stored_pages(&shop).await.remove(0);
    let entry = async |path: String| {
        let found = a.visit(&path).await;
        (found.status().as_u16(), found.text().await.unwrap())
    };
    let (name, marker) = (page.trim_start_matches("cache:"), shop.store.raw(&["GET", &page]).await);
    assert_eq!(entry(format!("/test/cache/{name}")).await, (200, marker.as_str().unwrap().to_owned()));
    let variants: Vec<Value> =
        serde_json::from_value(shop.store.raw(&["HVALS", &format!("variants:{name}")]).await).unwrap();
    assert!(
        !variants.is_empty() && variants.iter().all(|page| !page.as_str().unwrap().contains("ada")),
        "{variants:?}"
    );
}

#[tokio::test]
async fn a_visitor_cannot_reach_the_location_s_entries() {
    let shop = shop(&[]).await;
    store_page(&shop).await;
    let name = stored_pages(&shop).await.remove(0).replace("cache:", "");
    assert_eq!(shop.visit(&format!("/test/cache/{name}")).await.status(), 200, "the entry is there");
    shop.origin.answer(Reply::status(404));
    let request = shop.get(&format!("/{name}")).header("host", "edgefront.invalid");
    assert_eq!(request.send().await.unwrap().status(), 404);
    // The host of the entries is an ordinary host for visitors.
    let explained = service(&shop, Method::GET, "/cache?url=https://edgefront.invalid/x", Some(&json!(null))).await;
    assert_ne!(explained.json["key"], json!(name));
}
