//! Many visitors, one render.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;

use super::{cache_status, is_hit, make_popular, store_page, stored_pages};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    &[("PAGE_TTL", "1")];
    an_expired_page_is_rendered_once_for_200_visitors,
    a_failing_origin_is_not_asked_at_every_visit_of_a_stale_page,
    a_cold_page_is_rendered_for_all_and_stored_once,
}

/// Waits until the only stored page is stale: its first line says when.
async fn until_stale(shop: &Shop) {
    let key = stored_pages(shop).await.remove(0);
    let entry = shop.store.raw(&["GET", &key]).await;
    let fresh_until: u128 = entry.as_str().unwrap().split(' ').nth(3).unwrap().parse().unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    eventually("the page is stale", async || now() > fresh_until).await;
}

// D11
async fn an_expired_page_is_rendered_once_for_200_visitors(shop: &Shop) {
    shop.origin.answer(Reply::html("old"));
    store_page(shop, "mug").await;
    until_stale(shop).await;
    shop.origin.answer(Reply::html("new").header("cache-control", "max-age=60"));
    shop.origin.hold();
    let answers = join_all((0..200).map(|_| shop.visit("/products/mug"))).await;
    for answer in answers {
        // Nobody waits: the origin has not answered yet.
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
    store_page(shop, "mug").await;
    until_stale(shop).await;
    shop.origin.answer(Reply::html("broken").with_status(500));
    for _ in 0..5 {
        let answer = shop.visit("/products/mug").await;
        assert_eq!((answer.status().as_u16(), is_hit(&answer)), (200, true));
        shop.settled().await;
    }
    assert_eq!(shop.origin.count(), 2);
}

async fn a_cold_page_is_rendered_for_all_and_stored_once(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("page").header("cache-control", "max-age=60").after(Duration::from_millis(100)));
    let answers = join_all((0..20).map(|_| shop.visit("/products/mug"))).await;
    let stored = answers.iter().filter(|answer| cache_status(answer).ends_with("stored")).count();
    assert_eq!(stored, 1);
    shop.settled().await;
    assert!(is_hit(&shop.visit("/products/mug").await));
}
