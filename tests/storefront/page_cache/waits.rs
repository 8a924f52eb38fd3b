//! A visitor waits for the render of another visitor only if both may get the same page.

use futures_util::future::{join, join_all};
use http::Method;
use serde_json::json;

use super::{
    cache_status, is_hit, make_popular, name,
    rfc9111::{ask, fresh, status},
};
use crate::{
    routes::api::service,
    support::{Reply, Shop, eventually, scenarios},
};

scenarios! {
    &[("PAGE_WAIT_MS", "25000"), ("PAGE_MAX_BYTES", "1000"), ("PATHS_SHARED", "/shared/*")];
    nobody_waits_for_a_second_failing_render,
    nobody_waits_for_a_failed_render_behind_a_response,
    nobody_waits_for_a_page_that_each_request_validates,
    nobody_waits_for_a_page_that_varies_on_a_withheld_header,
    nobody_waits_for_another_visitors_own_page,
    a_slow_personal_page_is_rendered_for_everybody_afterwards,
    nobody_waits_twice_for_a_slow_page_that_is_too_large,
}

/// Sends three concurrent visits of `path`. The origin responds when all three have arrived.
async fn visit_together(shop: &Shop, path: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let before = shop.origin.count();
    shop.origin.hold();
    let visits = join_all((0..3).map(|_| ask(shop, path, headers)));
    let release = async {
        eventually("the origin has all three visits", async || shop.origin.count() == before + 3).await;
        shop.origin.release();
    };
    let (visits, ()) = join(visits, release).await;
    assert_eq!(shop.origin.count(), before + 3, "each visit costs one request");
    visits.into_iter().map(|(status, _)| status).collect()
}

async fn nobody_waits_for_a_second_failing_render(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("maintenance").with_status(503));
    shop.origin.hold();
    let visit = || status(shop, "/products/mug", &[]);
    let others = async {
        eventually("the origin has the first visit", async || shop.origin.count() == 1).await;
        let before = shop.store.counts().commands;
        let release = async {
            eventually("the others have looked the page up", async || shop.store.counts().commands > before).await;
            // The first visitor's render and own request fail.
            shop.origin.hold_after(2);
            eventually("the origin has all visits", async || shop.origin.count() == 4).await;
            shop.origin.release();
        };
        join(join_all((0..2).map(|_| visit())), release).await.0
    };
    let (first, others) = join(visit(), others).await;
    assert_eq!(first, "fwd=uri-miss; detail=status");
    for status in others {
        // The first visitor may have released the lease already.
        assert!([first.as_str(), "fwd=bypass; detail=origin-down"].contains(&status.as_str()), "{status}");
    }
}

async fn nobody_waits_for_a_failed_render_behind_a_response(shop: &Shop) {
    let control = "max-age=1, stale-while-revalidate=60";
    shop.origin.answer(fresh("old", control));
    status(shop, "/page", &[]).await;
    shop.origin.answer(Reply::status(500));
    eventually("the stale page is rendered again", async || {
        status(shop, "/page", &[]).await;
        shop.origin.count() == 2
    })
    .await;
    shop.settled().await;
    service(shop, Method::POST, "/purge", Some(&json!({"urls": ["/page"]}))).await;
    shop.origin.answer(fresh("new", control));
    assert_eq!(ask(shop, "/page", &[]).await, ("fwd=uri-miss; stored".to_owned(), "new".to_owned()));
}

async fn nobody_waits_for_a_page_that_each_request_validates(shop: &Shop) {
    for (path, name, control) in [
        ("/a", "cache-control", "no-cache"),
        ("/b", "cache-control", "max-age=0"),
        ("/shared/c", "cdn-cache-control", "no-cache"),
    ] {
        shop.origin.answer(Reply::html("page").header(name, control).header("etag", "\"a\""));
        status(shop, path, &[]).await;
        visit_together(shop, path, &[]).await;
    }
}

async fn nobody_waits_for_a_page_that_varies_on_a_withheld_header(shop: &Shop) {
    let long = "x".repeat(3_000);
    for (path, vary, value) in [("/a", "sec-ch-ua-mobile", "?0"), ("/b", "accept-language", &long)] {
        shop.origin.answer_with(move |asked| fresh(asked.header(vary), "public, max-age=60").header("vary", vary));
        let with_header = [(vary, value)];
        assert_eq!(ask(shop, path, &with_header).await, ("fwd=uri-miss; detail=vary".to_owned(), value.to_owned()));
        for _ in 0..2 {
            visit_together(shop, path, &with_header).await;
        }
        // The visitor without the header gets the page of all visitors without it.
        status(shop, path, &[]).await;
        assert!(status(shop, path, &[]).await.starts_with("hit"));
        assert_eq!(ask(shop, path, &with_header).await.1, value);
    }
}

async fn nobody_waits_for_another_visitors_own_page(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| Reply::html(name(asked).to_owned()));
    shop.origin.hold();
    let ada = async { super::visit(shop, "sid=ada").await.text().await.unwrap() };
    let guest = async {
        eventually("the origin has the visitor's request", async || shop.origin.count() == 1).await;
        let guest = async { shop.visit("/products/mug").await.text().await.unwrap() };
        let release = async {
            eventually("the origin has the guest's request", async || shop.origin.count() == 2).await;
            shop.origin.release();
        };
        join(guest, release).await.0
    };
    assert_eq!(join(ada, guest).await, ("ada".to_owned(), "guest".to_owned()));
    shop.settled().await;
    assert!(is_hit(&shop.visit("/products/mug").await));
}

async fn a_slow_personal_page_is_rendered_for_everybody_afterwards(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(name(asked), "public, max-age=60"));
    shop.origin.hold();
    let (answer, ()) = join(ask(shop, "/page", &[("cookie", "sid=ada")]), async {
        eventually("the origin has the visit", async || shop.origin.count() == 1).await;
        let before = shop.store.counts().commands;
        eventually("the lease goes back", async || shop.store.counts().commands > before).await;
        shop.origin.release();
    })
    .await;
    assert_eq!(answer, ("fwd=uri-miss; detail=personal".to_owned(), "ada".to_owned()));
    assert_eq!(ask(shop, "/page", &[("cookie", "sid=bob")]).await.1, "guest");
    assert_eq!(shop.origin.count(), 2);
}

async fn nobody_waits_twice_for_a_slow_page_that_is_too_large(shop: &Shop) {
    let rest = "x".repeat(1_000);
    shop.origin.answer(Reply::then_held("first ", rest.clone()).header("cache-control", "public, max-age=60"));
    shop.origin.hold();
    let slow = shop.visit("/page").await;
    shop.origin.release();
    assert_eq!(slow.text().await.unwrap().len(), "first ".len() + rest.len());
    shop.settled().await;
    assert_eq!(cache_status(&shop.visit("/page").await), "edgefront; fwd=bypass; detail=too-large");
}
