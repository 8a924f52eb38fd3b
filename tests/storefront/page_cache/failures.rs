//! Failures of Redis and of the origin.

use std::{io::Write as _, net::TcpStream, time::Duration};

use edgefront_gateway::{
    Fault, FaultScope,
    server::{Server, ServerOptions},
};
use http::Method;
use serde_json::json;

use super::{cache_status, header, make_popular, store_page, stored_pages};
use crate::{
    routes::api::log_in,
    support::{Reply, Shop, Store, eventually, scenarios},
};

scenarios! {
    &[("REDIS_TIMEOUT_MS", "2000"), ("PAGE_MEMORY", "0")];
    without_redis_pages_come_from_the_origin,
    after_three_timeouts_nobody_waits_for_redis,
    a_lease_whose_reply_was_lost_is_found_by_the_retry,
    a_truncated_page_is_a_502_and_not_stored,
    a_visitor_with_a_cookie_learns_that_the_origin_is_down,
    a_failed_render_does_not_keep_the_next_from_being_stored,
    after_a_failed_store_the_next_visitor_renders_the_page,
    a_page_that_is_too_large_is_served_and_not_stored,
    a_write_voids_its_page_even_if_redis_refuses_once,
}

async fn without_redis_pages_come_from_the_origin(shop: &Shop) {
    store_page(shop, "mug").await;
    for fault in [
        Fault::Refuse,
        Fault::Status(503, "<html>".to_owned()),
        Fault::Slow(Duration::from_secs(20)),
        Fault::LoseReply,
        Fault::Garbage,
        Fault::Truncate,
        Fault::ErrorBody("ERR max requests limit exceeded. Limit: 500000, Usage: 500000".to_owned()),
    ] {
        shop.store.gateway.set_fault(Some(fault.clone()));
        let answer = shop.visit("/products/mug").await;
        assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=redis-down", "{fault:?}");
        assert_eq!(answer.text().await.unwrap(), "<h1>/products/mug</h1>");
        shop.settled().await;
    }
    shop.store.gateway.set_fault(None);
    assert_eq!(cache_status(&shop.visit("/products/mug").await).split("; ").nth(1), Some("hit"));
}

async fn after_three_timeouts_nobody_waits_for_redis(shop: &Shop) {
    store_page(shop, "mug").await;
    shop.store.gateway.set_fault(Some(Fault::Slow(Duration::from_mins(1))));
    for _ in 0..3 {
        assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=bypass; detail=redis-down");
    }
    shop.settled().await;
    // The circuit is open: no request waits for Redis. The isolate's copy replaces the failing origin.
    shop.origin.answer(Reply::nothing());
    assert_eq!(shop.visit("/products/cup").await.status(), 502);
    assert_eq!(shop.blocking_requests().await, 0);
    let mug = shop.visit("/products/mug").await;
    assert_eq!(shop.blocking_requests().await, 0);
    let status = cache_status(&mug);
    assert!(status.starts_with("edgefront; hit; ttl=") && status.ends_with("; detail=redis-down"), "{status}");
    assert_eq!(mug.text().await.unwrap(), "<h1>/products/mug</h1>");

    shop.store.gateway.set_fault(None);
    eventually("Redis is asked again", async || {
        let status = cache_status(&shop.visit("/products/mug").await);
        status.starts_with("edgefront; hit; ttl=") && !status.contains("redis-down")
    })
    .await;
}

async fn a_lease_whose_reply_was_lost_is_found_by_the_retry(shop: &Shop) {
    store_page(shop, "mug").await;
    make_popular(shop, "cup").await;
    shop.store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert_eq!(cache_status(&shop.visit("/products/cup").await), "edgefront; fwd=uri-miss; stored");
}

/// Redis executes the lookup after its deadline, so nobody knows of the lease.
#[tokio::test]
async fn a_lease_whose_reply_was_late_is_released() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let store = Store::on(&format!("{}/0", server.url())).await;
    store.load_scripts().await;
    let shop = Shop::native_on(store, &[("REDIS_TIMEOUT_MS", "200"), ("PAGE_MEMORY", "0")]);
    make_popular(&shop, "mug").await;
    // No client may pause Redis over REST.
    let address = server.url().replace("redis://", "");
    TcpStream::connect(address).unwrap().write_all(b"CLIENT PAUSE 500\r\n").unwrap();
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=bypass; detail=redis-down");
    eventually("Redis grants the lease", async || has_lease(&shop).await).await;
    shop.settled().await;
    assert!(!has_lease(&shop).await);
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
}

async fn has_lease(shop: &Shop) -> bool {
    shop.store.raw(&["KEYS", "render:*"]).await != json!([])
}

async fn a_truncated_page_is_a_502_and_not_stored(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::truncated("<h1>half a"));
    let answer = shop.visit("/products/mug").await;
    assert_eq!(answer.status(), 502);
    assert_eq!(header(&answer, "cache-control"), "private, no-store");
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn a_visitor_with_a_cookie_learns_that_the_origin_is_down(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::nothing());
    for path in ["/products/mug", "/products/cup", "/about"] {
        let answer = shop.get(path).header("cookie", "basket=7").send().await.unwrap();
        assert_eq!(answer.status(), 502);
        assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=origin-down", "{path}");
        shop.settled().await;
    }
}

async fn a_failed_render_does_not_keep_the_next_from_being_stored(shop: &Shop) {
    make_popular(shop, "mug").await;
    for failure in [Reply::nothing(), Reply::truncated("half"), Reply::html("broken").with_status(500)] {
        shop.origin.answer(failure);
        assert!(shop.visit("/products/mug").await.status().is_server_error());
        shop.settled().await;
    }
    shop.origin.answer(Reply::html("page"));
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
}

async fn after_a_failed_store_the_next_visitor_renders_the_page(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.store.load_scripts().await;
    // Redis answers the lookup and the release, but not the store.
    shop.store.gateway.set_fault_for(Fault::Refuse, FaultScope::Every(2));
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
    shop.settled().await;
    shop.store.gateway.set_fault(None);
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
}

async fn a_page_that_is_too_large_is_served_and_not_stored(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::zeros(3 << 20));
    let answer = shop.visit("/products/mug").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=too-large");
    assert_eq!(answer.bytes().await.unwrap().len(), 3 << 20);
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    // The page is the same for all visitors, so a signed-in visitor also costs one request.
    make_popular(shop, "pan").await;
    let (ada, before) = (log_in(shop, "ada").await, shop.origin.count());
    let answer = shop.get("/products/pan").header("cookie", ada.cookie.unwrap()).send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=too-large");
    assert_eq!((answer.bytes().await.unwrap().len(), shop.origin.count() - before), (3 << 20, 1));
}

async fn a_write_voids_its_page_even_if_redis_refuses_once(shop: &Shop) {
    store_page(shop, "mug").await;
    shop.store.load_scripts().await;
    shop.store.gateway.set_fault_for(Fault::Refuse, FaultScope::Next(1));
    shop.request(Method::POST, "/products/mug").body("x").send().await.unwrap();
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

/// A page with parts of each visitor.
mod with_parts {
    use super::*;

    scenarios! {
        &[
            ("REDIS_TIMEOUT_MS", "2000"),
            ("PAGE_MEMORY", "3600"),
            ("HOLES", "/products/* .user <- user"),
            ("COOKIES_HOLES", "sid"),
            ("HOLES_WAIT_MS", "20000"),
        ];
        after_three_timeouts_no_part_of_a_page_waits_for_redis,
    }

    async fn after_three_timeouts_no_part_of_a_page_waits_for_redis(shop: &Shop) {
        make_popular(shop, "mug").await;
        shop.origin.answer_with(|asked| match asked.path.as_str() {
            "/fragment" => Reply::html(asked.header("edge-session").to_owned()),
            _ => Reply::html("<p class=user>nobody</p><esi:include src='/fragment'/>")
                .header("surrogate-control", r#"content="ESI/1.0""#),
        });
        shop.visit("/products/mug").await;
        let cookie = log_in(shop, "ada").await.cookie.unwrap();
        shop.settled().await;
        shop.store.gateway.set_fault(Some(Fault::Slow(Duration::from_mins(1))));
        for _ in 0..3 {
            shop.request(Method::POST, "/account").header("cookie", &cookie).send().await.unwrap();
        }
        // The log names each part that Redis has kept waiting.
        let waits = || {
            let is_wait = |line: &&String| line.contains("a part of a page: ") || line.contains("holes: ");
            shop.logs().iter().filter(is_wait).count()
        };
        let before = waits();
        for (method, path) in [(Method::GET, "/products/mug"), (Method::POST, "/account")] {
            let page = shop.request(method, path).header("cookie", &cookie).send().await.unwrap().text().await.unwrap();
            assert_eq!(page, "<p class=user>nobody</p>unknown", "{path}");
            assert_eq!(waits(), before, "{path}");
        }
    }
}
