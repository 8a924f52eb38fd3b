//! Single flight: many visitors share one render.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::{join, join_all};

use super::{cache_status, header, is_hit, make_popular, store_page, stored_pages};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    &[("PAGE_TTL", "1"), ("PAGE_WAIT_MS", "25000")];
    an_expired_page_is_rendered_once_for_200_visitors,
    a_failing_origin_is_not_asked_at_every_visit_of_a_stale_page,
    a_cold_page_is_rendered_once_for_20_visitors,
    a_visit_that_waited_for_a_stale_page_says_so,
    a_visit_that_waited_for_another_variant_says_so,
    reloads_at_the_same_time_share_a_render,
    a_304_keeps_a_silent_page_fresh,
}

/// Waits until the only stored page is stale. The first line of its value has the time.
async fn until_stale(shop: &Shop) {
    let key = stored_pages(shop).await.remove(0);
    let entry = shop.store.raw(&["GET", &key]).await;
    let fresh_until: u128 = entry.as_str().unwrap().split(' ').nth(3).unwrap().parse().unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    eventually("the page is stale", async || now() > fresh_until).await;
}

// The book's cache would render the page for each of the visitors.
async fn an_expired_page_is_rendered_once_for_200_visitors(shop: &Shop) {
    shop.origin.answer(Reply::html("old"));
    store_page(shop, "mug").await;
    until_stale(shop).await;
    shop.origin.answer(Reply::html("new").header("cache-control", "max-age=60"));
    shop.origin.hold();
    let answers = join_all((0..200).map(|_| shop.visit("/products/mug"))).await;
    for answer in answers {
        // The origin has not responded yet, so the visit did not wait for it.
        let status = cache_status(&answer);
        assert!(status == "edgefront; hit; ttl=0" || status.starts_with("edgefront; hit; ttl=-"), "{status}");
        assert_eq!(answer.text().await.unwrap(), "old");
    }
    shop.origin.release();
    shop.settled().await;
    assert_eq!(shop.origin.count(), 2, "one render for the first visitor, one for the 200");
    let answer = shop.visit("/products/mug").await;
    assert!(is_hit(&answer));
    assert_eq!(answer.text().await.unwrap(), "new");
}

async fn a_failing_origin_is_not_asked_at_every_visit_of_a_stale_page(shop: &Shop) {
    for (item, status) in [("mug", 500), ("cup", 429)] {
        shop.store.raw(&["FLUSHDB"]).await;
        shop.origin.answer(Reply::html("page"));
        store_page(shop, item).await;
        until_stale(shop).await;
        shop.origin.answer(Reply::html("broken").with_status(status));
        let before = shop.origin.count();
        for _ in 0..5 {
            let answer = shop.visit(&format!("/products/{item}")).await;
            assert_eq!((answer.status().as_u16(), is_hit(&answer)), (200, true), "{status}");
            shop.settled().await;
        }
        assert_eq!(shop.origin.count(), before + 1, "{status}");
    }
}

async fn a_cold_page_is_rendered_once_for_20_visitors(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("page").header("cache-control", "max-age=60"));
    let statuses = statuses_of_a_render_and_waiting_visits(shop, 20).await;
    assert_eq!(statuses.len(), 20);
    assert_eq!(
        statuses.iter().filter(|status| *status == "edgefront; fwd=uri-miss; stored").count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(shop.origin.count(), 1);
    assert!(is_hit(&shop.visit("/products/mug").await));
}

async fn a_visit_that_waited_for_a_stale_page_says_so(shop: &Shop) {
    make_popular(shop, "mug").await;
    let strict = "max-age=1, must-revalidate";
    shop.origin.answer(Reply::html("old").header("cache-control", strict).header("etag", "\"old\""));
    shop.visit("/products/mug").await;
    shop.settled().await;
    until_stale(shop).await;
    shop.origin.answer(Reply::html("new").header("cache-control", "max-age=60"));
    let statuses = statuses_of_a_render_and_waiting_visits(shop, 3).await;
    assert!(statuses.contains(&"edgefront; fwd=stale; stored".to_owned()), "{statuses:?}");
    assert!(statuses.contains(&"edgefront; fwd=stale; collapsed".to_owned()), "{statuses:?}");
    assert_eq!(shop.origin.count(), 2);
}

async fn a_visit_that_waited_for_another_variant_says_so(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("page").header("cache-control", "max-age=60").header("vary", "accept-language"));
    shop.get("/products/mug").header("accept-language", "de").send().await.unwrap();
    shop.settled().await;
    let renders = shop.origin.count();
    let statuses = statuses_of_a_render_and_waiting_visits(shop, 3).await;
    assert!(statuses.contains(&"edgefront; fwd=vary-miss; stored".to_owned()), "{statuses:?}");
    assert!(statuses.contains(&"edgefront; fwd=vary-miss; collapsed".to_owned()), "{statuses:?}");
    assert_eq!(shop.origin.count(), renders + 1);
}

/// Starts a visit whose render the origin holds, then the other visits. The origin responds when at least one of them
/// has looked the page up. Returns the `Cache-Status` of all visits.
async fn statuses_of_a_render_and_waiting_visits(shop: &Shop, visits: usize) -> Vec<String> {
    let renders = shop.origin.count();
    shop.origin.hold();
    let visit = async || cache_status(&shop.visit("/products/mug").await);
    let release = async {
        eventually("the origin renders", async || shop.origin.count() == renders + 1).await;
        let before = shop.store.counts().commands;
        let others = join_all((1..visits).map(|_| visit()));
        let waiting = async {
            eventually("a visit has looked the page up", async || shop.store.counts().commands > before).await;
            shop.origin.release();
        };
        join(others, waiting).await.0
    };
    let (first, mut statuses) = join(visit(), release).await;
    statuses.push(first);
    shop.settled().await;
    for status in &statuses {
        let is_expected = status.ends_with("; stored") || status.ends_with("; collapsed") || status.contains("; hit; ");
        assert!(is_expected, "{status}");
    }
    statuses
}

async fn reloads_at_the_same_time_share_a_render(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("old").header("cache-control", "max-age=60"));
    shop.visit("/products/mug").await;
    shop.settled().await;
    shop.origin.answer(Reply::html("new").header("cache-control", "max-age=60"));
    shop.origin.hold();
    let reload = async |control: &'static str| {
        shop.get("/products/mug").header("cache-control", control).send().await.unwrap().text().await.unwrap()
    };
    let release = async {
        eventually("the origin renders", async || shop.origin.count() == 2).await;
        let before = shop.store.counts().commands;
        let others = join_all((0..20).map(|_| reload("max-age=0")));
        let waiting = async {
            eventually("all have looked the page up", async || shop.store.counts().commands >= before + 20).await;
            shop.origin.release();
        };
        join(others, waiting).await.0
    };
    let (first, others) = join(reload("no-cache"), release).await;
    assert_eq!((first.as_str(), others), ("new", vec!["new".to_owned(); 20]));
    shop.settled().await;
    assert_eq!(shop.origin.count(), 2, "one render for 21 reloads");
    assert!(is_hit(&shop.visit("/products/mug").await), "a reload stores the page");
}

async fn a_304_keeps_a_silent_page_fresh(shop: &Shop) {
    shop.origin.answer(Reply::html("page").header("etag", "\"a\""));
    store_page(shop, "mug").await;
    until_stale(shop).await;
    shop.origin.answer(Reply::status(304).header("etag", "\"a\""));
    assert!(is_hit(&shop.visit("/products/mug").await));
    shop.settled().await;
    let answer = shop.visit("/products/mug").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(header(&answer, "cache-control"), "no-cache", "for browsers");
    assert_eq!(shop.origin.count(), 2);
}
