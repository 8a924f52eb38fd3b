//! Sampling of views at a reduced pace. The test runs in workerd, because the hash of the sampling has 32 bits in wasm.

use edgefront_gateway::Fault;

use super::views;
use crate::{
    page_cache::{is_hit, make_popular},
    routes::api::log_in,
    support::{Reply, Shop},
};

/// The number of sessions. Each session views the item once, from its own address.
const SESSIONS: u32 = 100;

#[tokio::test]
async fn a_sample_of_views_counts_as_all_of_them() {
    let shop = Shop::workerd(&[("PAGE_MEMORY", "3600"), ("TRAFFIC_INTERVAL", "0")]).await;
    shop.origin.answer(Reply::html("page"));
    make_popular(&shop, "mug").await;
    shop.visit("/products/mug").await;
    let mut cookies = Vec::new();
    for number in 0..SESSIONS {
        cookies.push(log_in(&shop, &format!("user-{number}")).await.cookie.expect("a cookie"));
    }
    let view = async |number: u32, cookie: &str| {
        let request = shop.get("/products/mug").header("cf-connecting-ip", format!("198.51.100.{number}"));
        assert!(is_hit(&request.header("cookie", cookie).send().await.expect("an answer")));
    };
    shop.settled().await;
    let before = views(&shop.store, "mug").await.expect("views");

    // Each write that Redis refuses raises the pace by one level. From level 4 on, edgefront samples views.
    shop.store.gateway.set_fault(Some("quota".parse::<Fault>().expect("a fault")));
    for level in 1..=4 {
        match level {
            1 => view(0, &cookies[0]).await,
            _ => drop(shop.visit("/_edge/v1/healthz").await),
        }
        shop.logged(&format!("the pace is at level {level}")).await;
        // Each step is longer than the interval of the level, and shorter than its calm time.
        shop.set_clock(level * 3_000).await;
    }
    shop.store.gateway.set_fault(None);
    for (number, cookie) in (1..).zip(&cookies[1..]) {
        view(number, cookie).await;
    }
    shop.settled().await;

    let counted = views(&shop.store, "mug").await.expect("views") - before;
    let expected = f64::from(SESSIONS);
    assert!((counted - expected).abs() < expected / 2.0, "{counted} of {expected}");
}
