//! Two tiers while the home tier, Redis or the origin fails.

use std::convert::Infallible;

use bytes::Bytes;
use edgefront::{ports::fetch::Response, proxy::home};
use edgefront_gateway::Fault;
use futures_util::{future::join_all, stream};
use http::Method;
use serde_json::{Value, json};

use super::{at, hops, open, tiers, visit};
use crate::{
    page_cache::{cache_status, header, is_hit},
    routes::api::{Answer, Visitor},
    support::{Reply, SESSION_KEYS, TestClock, app, config, eventually},
};

/// The edge tier confirms its copy for each answer, and waits 2 s for the home tier.
const SHORT_WAITS: [(&str, &str); 4] =
    [("PAGE_MEMORY", "0"), ("ORIGIN_TIMEOUT", "1"), ("PAGE_WAIT_MS", "0"), ("REDIS_TIMEOUT_MS", "1000")];

#[tokio::test]
async fn without_the_home_tier_the_edge_serves_its_copies_and_says_why() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    open(&tiers).await;
    tiers.set_home_fault("down").await;
    let [one, other] = &tiers.edge;
    let answer = visit(one, "/products/mug").await;
    assert!(cache_status(&answer).ends_with("detail=home-down"), "{answer:?}");
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "page"));
    for answer in [
        visit(one, "/products/pan").await,
        visit(other, "/cart?x=1").await,
        at(one, Method::POST, "/products/mug").body("x").send().await.unwrap(),
    ] {
        assert_eq!((answer.status().as_u16(), header(&answer, "retry-after").is_empty()), (503, false));
        assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=home-down");
    }
    let cart = Answer::to(Visitor::new(one).request(Method::GET, "/cart")).await;
    assert_eq!((cart.status, &cart.json["type"]), (503, &json!("urn:edgefront:unavailable")));
    tiers.set_home_fault("").await;
    assert!(is_hit(&visit(one, "/products/mug").await));
    assert_eq!(shop.origin.count(), 1);
}

#[tokio::test]
async fn another_answer_in_place_of_that_of_the_home_tier_counts_as_down() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    let [one, other] = &tiers.edge;
    open(&tiers).await;
    for fault in ["ill", "portal"] {
        tiers.set_home_fault(fault).await;
        let answer = visit(one, "/products/mug").await;
        assert!(cache_status(&answer).ends_with("detail=home-down"), "{fault}: {answer:?}");
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "page"));
    }
    tiers.set_home_fault("").await;
    assert!(is_hit(&visit(other, "/products/mug").await));
}

#[tokio::test]
async fn the_edge_tier_reads_no_more_than_a_page_and_its_head() {
    let variables = [
        ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1:1"),
        ("UPSTASH_REDIS_REST_TOKEN", "token"),
        ("SESSION_KEYS", SESSION_KEYS),
        ("PAGE_MAX_BYTES", "1000"),
    ];
    let app = app(config(&variables.map(|(name, value)| (name.to_owned(), value.to_owned()))), TestClock::ticking());
    for (length, is_read) in [(1_000 + (1 << 20), true), (1_001 + (1 << 20), false)] {
        let response = Response::new(vec![0; length].into());
        assert_eq!(home::collect(&app, response).await.is_some(), is_read, "{length}");
    }
}

#[tokio::test]
async fn a_page_that_is_not_handed_over_whole_counts_as_no_answer() {
    let (tiers, shop) = tiers(&SHORT_WAITS).await;
    let [one, other] = &tiers.edge;
    let long = "page".repeat(1_000);
    shop.origin.answer(Reply::html(long.clone()));
    open(&tiers).await;
    other.set_cache_fault("lost").await;
    for fault in ["halts", "ends", "breaks"] {
        tiers.set_home_fault(fault).await;
        let answer = visit(one, "/products/mug").await;
        assert!(cache_status(&answer).ends_with("detail=home-down"), "{fault}: {answer:?}");
        assert!(answer.status() == 200 && answer.text().await.unwrap() == long, "{fault}");
        // Without a copy, the edge tier passes on a finished response. If its body breaks off, the visitor gets an error.
        let passed = async { at(other, Method::GET, "/products/mug").send().await?.text().await }.await;
        assert!(passed.ok() == (fault != "breaks").then(|| long.clone()), "{fault}");
    }
}

#[tokio::test]
async fn a_confirmation_that_is_not_whole_drops_no_copy() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "60"), ("PAGE_WAIT_MS", "0"), ("REDIS_TIMEOUT_MS", "1000")]).await;
    let one = &tiers.edge[0];
    open(&tiers).await;
    for (fault, offset) in [("halts", 31_000), ("ends", 93_000), ("breaks", 155_000)] {
        tiers.set_home_fault(fault).await;
        one.set_clock(offset).await;
        for expected in [vec!["GET /products/mug"], vec![]] {
            assert!(is_hit(&visit(one, "/products/mug").await), "{fault}");
            assert_eq!(hops(&tiers).await, expected, "{fault}");
        }
        // The copy has expired.
        tiers.set_home_fault("").await;
        one.set_clock(offset + 31_000).await;
        assert!(is_hit(&visit(one, "/products/mug").await), "{fault}");
        hops(&tiers).await;
    }
}

#[tokio::test]
async fn a_newer_home_tier_answers_by_itself_what_the_edge_tier_does_not_understand() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    open(&tiers).await;
    // The home tier confirms the copy of the first isolate, and sends the page to the second isolate.
    for isolate in &tiers.edge {
        tiers.set_home_fault("newer").await;
        for path in ["/products/mug", "/about", "/_edge/v1/popular"] {
            let answer = visit(isolate, path).await;
            assert_eq!((answer.status().as_u16(), header(&answer, "edge-tier-new").as_str()), (200, ""), "{path}");
            assert!(path.ends_with("popular") || answer.text().await.unwrap() == "page", "{path}");
        }
        tiers.set_home_fault("").await;
        assert_eq!(visit(isolate, "/products/mug").await.text().await.unwrap(), "page");
    }
}

#[tokio::test]
async fn a_home_tier_that_refuses_the_edge_counts_as_down() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    open(&tiers).await;
    tiers.set_home_fault("stranger").await;
    let answer = visit(&tiers.edge[0], "/products/mug").await;
    assert!(cache_status(&answer).ends_with("detail=home-down"), "{answer:?}");
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "page"));
    let other = visit(&tiers.edge[0], "/about").await;
    assert_eq!((other.status().as_u16(), header(&other, "edge-tier-key").as_str()), (503, ""));
    tiers.edge[0].logged("both tiers need the same SESSION_KEYS").await;
}

#[tokio::test]
async fn a_binding_to_the_entry_point_for_visitors_is_logged_and_fails_the_readiness() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "3600"), ("VIEW_WINDOW", "0")]).await;
    let one = &tiers.edge[0];
    open(&tiers).await;
    let ready = async || Answer::to(Visitor::new(one).request(Method::GET, "/readyz")).await;
    assert_eq!(ready().await.status, 200);
    tiers.set_home_fault("default").await;
    assert!(is_hit(&visit(one, "/products/mug").await));
    one.logged("bind HOME to the entry point `home`").await;
    let refused = ready().await;
    assert_eq!((refused.status, &refused.json["views"]), (503, &json!("lost")));
    tiers.set_home_fault("").await;
    assert_eq!(ready().await.status, 200);
}

#[tokio::test]
async fn a_copy_at_the_edge_stands_in_when_neither_redis_nor_the_origin_answers() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    open(&tiers).await;
    // The home tier's own copy is too old.
    tiers.home.set_clock(864_000_000).await;
    shop.store.gateway.set_fault(Some(Fault::Refuse));
    shop.origin.answer(Reply::nothing());
    let answer = visit(&tiers.edge[0], "/products/mug").await;
    assert!(cache_status(&answer).ends_with("detail=redis-down"), "{answer:?}");
    assert_eq!(header(&answer, "edge-tier-without-redis"), "");
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "page"));
    // An isolate without a copy.
    assert_eq!(visit(&tiers.home, "/products/mug").await.status(), 502);
}

#[tokio::test]
async fn an_origin_cannot_pretend_that_redis_is_down() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "0")]).await;
    open(&tiers).await;
    for shop in [&tiers.edge[0], &tiers.home] {
        shop.set_clock(864_000_000).await;
    }
    let failure =
        Reply::html("closed").with_status(503).header("cache-status", "edgefront; fwd=bypass; detail=redis-down");
    shop.origin.answer(failure.header("edge-tier-without-redis", ""));
    let answer = visit(&tiers.edge[0], "/products/mug").await;
    assert_eq!((answer.status().as_u16(), header(&answer, "edge-tier-without-redis").as_str()), (503, ""));
    assert_eq!(answer.text().await.unwrap(), "closed");
}

#[tokio::test]
async fn without_redis_a_confirmation_reaches_no_origin_and_drops_no_copy() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "60")]).await;
    open(&tiers).await;
    shop.store.gateway.set_fault(Some(Fault::Refuse));
    // The copy at the edge needs a confirmation. The copy of the home tier has expired.
    tiers.edge[0].set_clock(31_000).await;
    tiers.home.set_clock(864_000_000).await;
    for expected in [vec!["GET /products/mug"], vec![]] {
        assert!(is_hit(&visit(&tiers.edge[0], "/products/mug").await));
        assert_eq!(hops(&tiers).await, expected);
    }
    assert_eq!(shop.origin.count(), 1);
}

/// Their clients never send the bodies, so the home tier gives the requests up.
#[tokio::test]
async fn slow_uploads_do_not_open_the_circuit() {
    let (tiers, _shop) = tiers(&SHORT_WAITS).await;
    let one = &tiers.edge[0];
    open(&tiers).await;
    let uploads = (0..3).map(|_| {
        let body = stream::pending::<Result<Bytes, Infallible>>();
        let request = Visitor::new(one).request(Method::POST, "/cart/items").header("content-type", "application/json");
        request.body(reqwest::Body::wrap_stream(body)).send()
    });
    for answer in join_all(uploads).await {
        assert_eq!(answer.unwrap().status(), 400);
    }
    let answer = visit(one, "/products/mug").await;
    assert!(is_hit(&answer) && !cache_status(&answer).contains("detail"), "{answer:?}");
}

#[tokio::test]
async fn a_silent_home_tier_opens_the_circuit_and_a_probe_closes_it() {
    let (tiers, _shop) = tiers(&SHORT_WAITS).await;
    let one = &tiers.edge[0];
    open(&tiers).await;
    tiers.set_home_fault("silent").await;
    join_all((0..3).map(|_| visit(one, "/products/mug"))).await;
    tiers.home.visit("/test/hops").await;
    let answer = visit(one, "/products/mug").await;
    assert!(cache_status(&answer).ends_with("detail=home-down"), "{answer:?}");
    let asked: Value = tiers.home.visit("/test/hops").await.json().await.unwrap();
    assert!(!asked.to_string().contains("/products/mug"), "nobody waits for the home tier: {asked}");
    tiers.set_home_fault("").await;
    let mut clock = 0;
    eventually("the circuit closes", async || {
        clock += 6_000;
        one.set_clock(clock).await;
        is_hit(&visit(one, "/products/mug").await)
            && !cache_status(&visit(one, "/products/mug").await).contains("detail")
    })
    .await;
}
