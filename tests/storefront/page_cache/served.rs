//! A stored page is served as the origin sent it, with the headers that HTTP requires.

use http::Method;

use super::{cache_status, header, is_hit, make_popular, store_page, stored_pages};
use crate::support::{Reply, Shop, scenarios, set_cookie};

scenarios! {
    // The tests change Redis behind the isolate's back, so each visit must ask Redis.
    &[("PAGE_MEMORY", "0")];
    a_stored_page_keeps_its_headers_and_every_byte,
    a_browser_that_has_the_page_gets_a_304,
    head_is_answered_from_the_stored_get,
    a_body_compressed_without_a_request_is_passed_on_unchanged,
    the_freshness_that_the_origin_states_is_not_stretched,
    authorization_no_store_no_cache_and_post_reach_the_origin,
    a_visit_waits_for_one_request_to_redis,
}

async fn a_stored_page_keeps_its_headers_and_every_byte(shop: &Shop) {
    let body: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let reply = Reply::html(body.clone()).header("x-name", "café").header("link", "</a>").header("link", "</b>");
    shop.origin.answer(reply.header("edge-tags", "mugs").header("cache-status", "inner; hit"));
    store_page_once(shop).await;
    let answer = shop.visit("/products/mug").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(answer.headers()["x-name"].as_bytes(), "café".as_bytes());
    assert_eq!(header(&answer, "content-type"), "text/html; charset=utf-8");
    assert_eq!(header(&answer, "content-length"), "70000");
    assert_eq!(header(&answer, "age"), "0");
    assert_eq!(header(&answer, "edge-tags"), "");
    let links: Vec<_> = answer.headers().get_all("link").iter().map(|value| value.to_str().unwrap()).collect();
    // A Worker joins the lines of a header.
    assert_eq!(links.join(", "), "</a>, </b>");
    assert_eq!(answer.bytes().await.unwrap(), body);
    assert_eq!(shop.origin.count(), 1);
}

async fn store_page_once(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.visit("/products/mug").await;
    shop.settled().await;
}

async fn a_browser_that_has_the_page_gets_a_304(shop: &Shop) {
    make_popular(shop, "mug").await;
    let etag = header(&shop.visit("/products/mug").await, "etag");
    assert!(etag.starts_with('"') && etag.len() == 18, "{etag}");
    shop.settled().await;
    let ask = async |tag: &str| shop.get("/products/mug").header("if-none-match", tag).send().await.unwrap();

    let not_modified = ask(&format!("\"other\", {etag}")).await;
    assert_eq!((not_modified.status().as_u16(), header(&not_modified, "etag")), (304, etag));
    // The browser must validate the page on each visit, so that a purge reaches browsers, too.
    assert_eq!(header(&not_modified, "cache-control"), "no-cache");
    assert_eq!(header(&not_modified, "content-type"), "");
    assert!(is_hit(&not_modified));
    assert_eq!(not_modified.text().await.unwrap(), "");
    assert_eq!(ask("\"other\"").await.status(), 200);
    assert_eq!(shop.origin.count(), 1);
}

async fn head_is_answered_from_the_stored_get(shop: &Shop) {
    make_popular(shop, "mug").await;
    let head = async || shop.request(Method::HEAD, "/products/mug").send().await.unwrap();
    assert_eq!(cache_status(&head().await), "edgefront; fwd=uri-miss; stored");
    assert_eq!(shop.origin.last().method, Method::GET);
    shop.settled().await;
    let (head, get) = (head().await, shop.visit("/products/mug").await);
    assert!(is_hit(&head) && is_hit(&get));
    for name in ["etag", "content-type", "content-length"] {
        assert_eq!(header(&head, name), header(&get, name), "{name}");
    }
    assert_eq!(head.text().await.unwrap(), "");
    assert_eq!(get.text().await.unwrap(), "<h1>/products/mug</h1>");
}

async fn a_body_compressed_without_a_request_is_passed_on_unchanged(shop: &Shop) {
    /// `<h1>page</h1>`, compressed.
    const GZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xb3\xc9\x30\xb4\x2b\x48\x4c\x4f\xb5\xd1\x07\x32\x00\xeb\xcb\x85\x04\x0d\x00\x00\x00";
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html(GZIPPED).header("content-encoding", "gzip"));
    let answer = shop.get("/products/mug").header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=encoding");
    assert_eq!(header(&answer, "content-encoding"), "gzip");
    assert_eq!(answer.bytes().await.unwrap(), GZIPPED);
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn the_freshness_that_the_origin_states_is_not_stretched(shop: &Shop) {
    shop.origin.answer(Reply::html("page").header("cache-control", "max-age=5, s-maxage=1000").header("age", "100"));
    store_page(shop, "mug").await;
    let answer = shop.visit("/products/mug").await;
    assert_eq!(header(&answer, "cache-control"), "max-age=5, s-maxage=1000");
    let age: u64 = header(&answer, "age").parse().unwrap();
    assert!((100..110).contains(&age), "{age}");
    let ttl: i64 = cache_status(&answer).rsplit('=').next().unwrap().parse().unwrap();
    assert!((890..=900).contains(&ttl), "{ttl}");
    let life = shop.store.raw(&["PTTL", &stored_pages(shop).await[0]]).await.as_u64().unwrap();
    assert!(life <= 900_000, "what the origin chose is not stretched: {life}");
}

async fn authorization_no_store_no_cache_and_post_reach_the_origin(shop: &Shop) {
    store_page(shop, "mug").await;
    for (name, value) in [("authorization", "Basic eDp5"), ("cache-control", "no-store")] {
        let answer = shop.get("/products/mug").header(name, value).send().await.unwrap();
        assert_eq!(cache_status(&answer), format!("edgefront; fwd=request; detail={name}"));
        assert_eq!(shop.origin.last().header(name), value);
    }
    let answer = shop.get("/products/mug").header("cache-control", "no-cache").send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=request; stored");
    assert_eq!(shop.origin.last().header("cache-control"), "no-cache", "for the caches behind us");
    let answer = shop.request(Method::POST, "/products/mug").send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=method; detail=method");
}

async fn a_visit_waits_for_one_request_to_redis(shop: &Shop) {
    shop.origin.answer(Reply::html("hello").header("edge-login", "ada"));
    let login = shop.visit("/login").await;
    let cookie = set_cookie(&login);
    shop.origin.answer(Reply::html("page"));
    make_popular(shop, "mug").await;
    make_popular(shop, "cup").await;
    let forged = cookie.replace("session=A", "session=B");
    for (path, cookie, requests, status) in [
        // The first visit sends the source of each script in a second request.
        ("/products/cup", cookie.as_str(), None, "fwd=uri-miss; stored"),
        ("/products/mug", "", Some(1), "fwd=uri-miss; stored"),
        ("/products/mug", "", Some(1), "hit"),
        ("/products/mug", cookie.as_str(), Some(1), "hit"),
        ("/products/mug", &forged, Some(1), "hit"),
        ("/products/rare", cookie.as_str(), Some(1), "fwd=bypass; detail=unpopular"),
        ("/cart", cookie.as_str(), Some(1), "fwd=bypass; detail=no-item"),
        // The first visit leaves a hit-for-miss note.
        ("/about", "", Some(1), "fwd=bypass; detail=no-item"),
        ("/about", "", Some(0), "fwd=bypass; detail=no-item"),
        ("/cart", "", Some(0), "fwd=bypass; detail=no-item"),
        ("/cart", &forged, Some(0), "fwd=bypass; detail=no-item"),
        ("/products/mug?_=1", "", Some(0), "fwd=bypass; detail=dynamic"),
    ] {
        let answer = shop.get(path).header("cookie", cookie).send().await.unwrap();
        assert!(cache_status(&answer).contains(status), "{path}: {}", cache_status(&answer));
        let blocking = shop.blocking_requests().await;
        assert_eq!(blocking, requests.unwrap_or(blocking), "{path} {cookie:?}");
        shop.settled().await;
    }
}
