//! A visitor waits for another visitor's render only if it can end with a page for both.

use futures_util::future::{join, join_all};

use super::{
    cache_status, is_hit, make_popular, name,
    rfc9111::{ask, fresh, status},
};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    &[("PAGE_WAIT_MS", "25000"), ("PAGE_MAX_BYTES", "1000")];
    nobody_waits_while_the_origin_fails,
    nobody_waits_for_a_page_that_varies_on_a_withheld_header,
    nobody_waits_for_another_visitors_own_page,
    nobody_waits_twice_for_a_slow_page_that_is_too_large,
}

/// Visits `path` three times at the same time. The origin answers none of the visits before it has all of them.
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

async fn nobody_waits_while_the_origin_fails(shop: &Shop) {
    shop.origin.answer(Reply::html("maintenance").with_status(503));
    make_popular(shop, "mug").await;
    status(shop, "/products/mug", &[]).await;
    for status in visit_together(shop, "/products/mug", &[]).await {
        assert_eq!(status, "fwd=uri-miss; detail=status");
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
        // A visitor without the header gets a page for all others without it.
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
