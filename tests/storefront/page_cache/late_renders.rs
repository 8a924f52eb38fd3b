//! A page whose render takes longer than `PAGE_WAIT_MS`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::{join, join_all, try_join_all};
use tokio::time::sleep;

use super::{cache_status, is_hit, make_popular};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    &[("PAGE_WAIT_MS", "100")];
    a_slow_origin_does_not_get_the_whole_crowd,
    a_slow_render_elsewhere_stops_nobody,
}

async fn a_slow_origin_does_not_get_the_whole_crowd(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.hold();
    let crowd = join_all((0..60).map(|_| shop.visit("/products/mug")));
    let release = async {
        let expected = 1 + 16;
        eventually("the lease's holder and the late renders", async || shop.origin.count() == expected).await;
        // Long enough for all other visits to pass `PAGE_WAIT_MS`, too.
        sleep(Duration::from_secs(1)).await;
        assert_eq!(shop.origin.count(), expected);
        shop.origin.release();
    };
    let (crowd, ()) = join(crowd, release).await;
    for answer in crowd {
        let status = cache_status(&answer);
        assert_eq!(answer.status(), 200, "{status}");
        assert_eq!(answer.text().await.unwrap(), "<h1>/products/mug</h1>", "{status}");
    }
    shop.settled().await;
    assert!(is_hit(&shop.visit("/products/mug").await));
}

async fn a_slow_render_elsewhere_stops_nobody(shop: &Shop) {
    make_popular(shop, "mug").await;
    let is_first = AtomicBool::new(true);
    shop.origin.answer_with(move |_| {
        let delay = if is_first.swap(false, Ordering::Relaxed) { Duration::from_secs(5) } else { Duration::ZERO };
        Reply::html("page").after(delay)
    });
    let elsewhere = shop.elsewhere(&[("PAGE_WAIT_MS", "100")]).await;
    // Both shops must have the same pages.
    let visit = |shop: &Shop| shop.get("/products/mug").header("host", "shop.example").send();
    let crowd = async {
        eventually("another isolate renders the page", async || shop.origin.count() == 1).await;
        try_join_all((0..40).map(|_| visit(&elsewhere))).await
    };
    let (first, crowd) = join(visit(shop), crowd).await;
    assert_eq!(cache_status(&first.unwrap()), "edgefront; fwd=uri-miss; stored");
    for answer in crowd.unwrap() {
        assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=in-render");
        assert_eq!(answer.text().await.unwrap(), "page");
    }
}
