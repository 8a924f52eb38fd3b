//! Stale responses: during revalidation, and in place of errors.

use std::time::Duration;

use futures_util::future::{join, join_all};

use super::{ask, fresh, status};
use crate::{
    page_cache::cache_status,
    support::{Reply, Shop, eventually, scenarios},
};

scenarios! {
    &[("PAGE_WAIT_MS", "15000")];
    a_stale_page_is_served_while_it_is_revalidated,
    a_stale_page_replaces_the_error_of_a_failing_origin,
    a_page_that_must_be_revalidated_replaces_no_error,
    a_stored_page_that_becomes_private_is_no_longer_served,
    an_expired_page_is_validated_once_for_200_visitors,
    each_visitor_of_a_private_page_costs_one_request,
}

/// Lets a lifetime of one second end.
async fn a_second_later() {
    tokio::time::sleep(Duration::from_millis(1_100)).await;
}

// RFC 5861 §3
async fn a_stale_page_is_served_while_it_is_revalidated(shop: &Shop) {
    shop.origin.answer(fresh("old", "max-age=1, stale-while-revalidate=60"));
    ask(shop, "/page", &[]).await;
    a_second_later().await;
    shop.origin.answer(fresh("new", "max-age=60"));
    let (status, body) = ask(shop, "/page", &[]).await;
    assert!(status.starts_with("hit; ttl=-") || status == "hit; ttl=0", "{status}");
    assert_eq!(body, "old");
    assert_eq!(ask(shop, "/page", &[]).await.1, "new");
    assert_eq!(shop.origin.count(), 2);
}

// §4.2.4, RFC 5861 §4
async fn a_stale_page_replaces_the_error_of_a_failing_origin(shop: &Shop) {
    shop.origin.answer(fresh("old", "max-age=1, stale-if-error=60"));
    ask(shop, "/allowed", &[]).await;
    shop.origin.answer(fresh("old", "max-age=1"));
    ask(shop, "/silent", &[]).await;
    a_second_later().await;

    shop.origin.answer(Reply::html("broken").with_status(500));
    let (status, body) = ask(shop, "/allowed", &[]).await;
    assert!(status.starts_with("hit; ttl=") && status.ends_with("; detail=origin-down"), "{status}");
    assert_eq!(body, "old");
    assert_eq!(shop.get("/silent").send().await.unwrap().status(), 500, "an answer is an answer");
    shop.settled().await;

    shop.origin.answer(Reply::nothing());
    let before = shop.origin.count();
    for path in ["/allowed", "/silent"] {
        assert_eq!(ask(shop, path, &[]).await.1, "old", "{path}");
    }
    // `/allowed` failed a moment ago, so it is not requested again. A platform may repeat a request whose connection
    // broke.
    assert!(shop.origin.count() <= before + 2, "an origin that failed is left in peace for a while");
}

// §5.2.2.2, §5.2.2.8, §5.2.2.10, §5.2.2.4
async fn a_page_that_must_be_revalidated_replaces_no_error(shop: &Shop) {
    let controls =
        ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "max-age=1, s-maxage=1", "max-age=1, no-cache"];
    for (number, control) in controls.iter().enumerate() {
        shop.origin.answer(fresh("old", control).header("etag", "\"a\""));
        ask(shop, &format!("/{number}"), &[]).await;
    }
    a_second_later().await;
    shop.origin.answer(Reply::nothing());
    for (number, control) in controls.iter().enumerate() {
        for headers in [&[][..], &[("cache-control", "max-stale, stale-if-error=60")]] {
            let (status, _) = ask(shop, &format!("/{number}"), headers).await;
            assert!(status.ends_with("detail=origin-down") && status.starts_with("fwd="), "{control}: {status}");
        }
    }
}

async fn a_stored_page_that_becomes_private_is_no_longer_served(shop: &Shop) {
    shop.origin.answer(fresh("for all", "max-age=1, stale-while-revalidate=60"));
    ask(shop, "/page", &[]).await;
    a_second_later().await;
    shop.origin.answer(fresh("yours", "private"));
    ask(shop, "/page", &[]).await;
    assert_eq!(ask(shop, "/page", &[]).await.1, "yours");
}

// The book's cache would render the page for each of the visitors.
async fn an_expired_page_is_validated_once_for_200_visitors(shop: &Shop) {
    shop.origin.answer(fresh("old", "max-age=1, must-revalidate").header("etag", "\"a\""));
    ask(shop, "/page", &[]).await;
    a_second_later().await;
    shop.origin.answer(fresh("new", "max-age=60"));
    shop.origin.hold();
    let before = shop.store.counts().commands;
    let visits = join_all((0..200).map(|_| shop.visit("/page")));
    let release = async {
        eventually("the origin is asked", async || shop.origin.count() == 2).await;
        eventually("all visits look the page up", async || shop.store.counts().commands >= before + 200).await;
        shop.origin.release();
    };
    let (answers, ()) = join(visits, release).await;
    let stored = answers.iter().filter(|answer| cache_status(answer).ends_with("stored")).count();
    for answer in answers {
        assert_eq!(answer.text().await.unwrap(), "new");
    }
    assert_eq!((shop.origin.count(), stored), (2, 1), "one render for all, and none of them got what is over");
}

async fn each_visitor_of_a_private_page_costs_one_request(shop: &Shop) {
    shop.origin.answer(fresh("yours", "private").after(Duration::from_millis(200)));
    let answers = join_all((0..20).map(|_| shop.visit("/page"))).await;
    assert!(answers.iter().all(|answer| answer.status() == 200));
    // The first response leaves a hit-for-miss note for the others.
    assert_eq!(shop.origin.count(), 20);
    assert_eq!(status(shop, "/page", &[]).await, "fwd=bypass; detail=private");
}
