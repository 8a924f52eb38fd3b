//! `Edge-Item`: the origin names the item on a page, so views, orders and rows use one id for all URLs of the item.

use edgefront::{
    page_cache::{Purge, PurgeMode, purge},
    ports::fetch::Body,
    routes,
    schema::ids::ItemId,
};
use futures_util::future::join;
use http::Method;
use serde_json::json;

use super::{cache_status, header, is_hit, make_popular, stored_pages};
use crate::{
    routes::api::service,
    support::{Reply, Shop, Store, TestOrigin, eventually, scenarios, set_cookie},
};

scenarios! {
    // The tests change Redis behind the isolate's back, so each visit must ask Redis.
    &[("PAGE_MEMORY", "0")];
    a_page_that_the_origin_names_is_cached_as_an_items_page,
    a_named_page_costs_what_an_items_page_costs,
    the_origins_item_wins_over_that_of_the_url,
    a_view_counts_for_the_named_item_wherever_the_page_came_from,
    a_session_remembers_the_named_item,
    a_purge_of_the_item_voids_its_named_page,
    a_purge_of_the_urls_item_voids_a_page_that_names_another_one,
    a_page_that_is_no_longer_named_is_no_items_page,
    a_named_page_with_parameters_is_not_admitted_by_popularity,
    a_304_keeps_the_name_of_the_stored_page,
    a_name_that_is_no_item_id_is_ignored,
    only_a_page_that_was_shown_is_a_view,
}

mod memory {
    use super::*;

    scenarios! {
        &[("PAGE_MEMORY", "3600"), ("VIEW_WINDOW", "3600")];
        a_copy_of_the_isolate_counts_for_the_named_item,
    }
}

/// A page whose URL names no item.
const PAGE: &str = "/catalogue/enamel-mug_23/";

/// Makes the origin name the mug on every page.
fn shows_mug(shop: &Shop) {
    shop.origin.answer_with(|asked| Reply::html(asked.path.clone()).header("edge-item", "mug"));
}

/// A visit from `network`. Another network makes another view.
async fn visit_from(shop: &Shop, network: &str, path: &str) -> reqwest::Response {
    let answer = shop.get(path).header("cf-connecting-ip", network).send().await.unwrap();
    assert_eq!(header(&answer, "edge-item"), "", "the header is the origin's word to edgefront");
    shop.settled().await;
    answer
}

async fn views(shop: &Shop, item: &str) -> serde_json::Value {
    shop.store.raw(&["ZSCORE", "viewed:", item]).await
}

async fn a_page_that_the_origin_names_is_cached_as_an_items_page(shop: &Shop) {
    shows_mug(shop);
    for expected in ["edgefront; fwd=bypass; detail=unpopular", "edgefront; fwd=uri-miss; stored"] {
        assert_eq!(cache_status(&visit_from(shop, "203.0.113.1", PAGE).await), expected);
    }
    let hit = visit_from(shop, "203.0.113.1", PAGE).await;
    assert!(is_hit(&hit), "{}", cache_status(&hit));
    let explained = service(shop, Method::GET, &format!("/cache?url={PAGE}"), None).await.json;
    assert_eq!(
        (&explained["why"], &explained["item"], &explained["rank"]),
        (&json!("fresh"), &json!("mug"), &json!(0))
    );
}

async fn a_named_page_costs_what_an_items_page_costs(shop: &Shop) {
    shows_mug(shop);
    for _ in ["unpopular", "stored", "hit"] {
        // After these visits, Redis knows the scripts.
        visit_from(shop, "203.0.113.1", PAGE).await;
    }
    for path in [PAGE, "/catalogue/another-mug_24/", "/catalogue/another-mug_24/"] {
        shop.visit(path).await;
        assert_eq!(shop.blocking_requests().await, 1, "{path}");
        shop.settled().await;
    }
}

async fn the_origins_item_wins_over_that_of_the_url(shop: &Shop) {
    shows_mug(shop);
    make_popular(shop, "pan").await;
    let first = visit_from(shop, "203.0.113.1", "/products/pan").await;
    assert_eq!(cache_status(&first), "edgefront; fwd=bypass; detail=unpopular");
    assert_eq!((views(shop, "mug").await, views(shop, "pan").await), (json!("-1"), json!("-1000")));
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    visit_from(shop, "203.0.113.1", "/products/pan").await;
    assert!(is_hit(&visit_from(shop, "203.0.113.1", "/products/pan").await));
}

async fn a_view_counts_for_the_named_item_wherever_the_page_came_from(shop: &Shop) {
    shows_mug(shop);
    for (network, cookie) in [("203.0.113.1", ""), ("203.0.113.2", ""), ("203.0.113.3", ""), ("203.0.113.4", "own=1")] {
        let request = shop.get(PAGE).header("cf-connecting-ip", network).header("cookie", cookie);
        assert_eq!(request.send().await.unwrap().status(), 200);
        shop.settled().await;
    }
    assert_eq!(views(shop, "mug").await, "-4", "bypassed, rendered, from the store, for one visitor");
    let crawler = shop.get(PAGE).header("cf-connecting-ip", "203.0.113.5").header("user-agent", "Googlebot/2.1");
    crawler.send().await.unwrap();
    shop.settled().await;
    assert_eq!(views(shop, "mug").await, "-4");
    // A page with a stated lifetime is stored at once.
    shop.origin.answer(Reply::html("pan").header("edge-item", "pan").header("cache-control", "max-age=60"));
    for network in ["203.0.113.1", "203.0.113.2"] {
        visit_from(shop, network, "/catalogue/pan_7/").await;
    }
    assert_eq!(views(shop, "pan").await, "-2");
}

async fn a_session_remembers_the_named_item(shop: &Shop) {
    shop.origin.answer(Reply::html("hello").header("edge-login", "ada"));
    let login = shop.visit("/login").await;
    let cookie = set_cookie(&login);
    shows_mug(shop);
    for path in [PAGE, "/products/pan"] {
        shop.get(path).header("cookie", &cookie).send().await.unwrap();
        shop.settled().await;
    }
    let recent = shop.get("/_edge/v1/recent").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(recent.text().await.unwrap(), r#"{"items":["mug"]}"#);
}

async fn a_purge_of_the_item_voids_its_named_page(shop: &Shop) {
    for tags in ["", "sale, mugs"] {
        shop.store.raw(&["FLUSHDB"]).await;
        make_popular(shop, "mug").await;
        shop.origin.answer_with(move |_| Reply::html("old").header("edge-item", "mug").header("edge-tags", tags));
        for _ in ["named", "stored"] {
            visit_from(shop, "203.0.113.1", PAGE).await;
        }
        let purge = async |item: &str, mode| {
            let purges = [Purge::Item(ItemId::parse(item).unwrap())];
            purge(&shop.store.aside, &purges, mode).await.unwrap();
        };
        for other in ["pan", "mu", "sale"] {
            purge(other, PurgeMode::Hard).await;
        }
        assert!(is_hit(&visit_from(shop, "203.0.113.1", PAGE).await), "{tags}");

        shop.origin.answer_with(move |_| Reply::html("new").header("edge-item", "mug").header("edge-tags", tags));
        purge("mug", PurgeMode::Soft).await;
        let stale = visit_from(shop, "203.0.113.1", PAGE).await;
        assert_eq!(stale.text().await.unwrap(), "old", "stale, while it is rendered again");
        let renewed = visit_from(shop, "203.0.113.1", PAGE).await;
        assert!(is_hit(&renewed), "the item's rank admits the page again: {}", cache_status(&renewed));
        assert_eq!(renewed.text().await.unwrap(), "new");

        purge("mug", PurgeMode::Hard).await;
        assert!(!is_hit(&visit_from(shop, "203.0.113.1", PAGE).await), "{tags}");
    }
}

async fn a_purge_of_the_urls_item_voids_a_page_that_names_another_one(shop: &Shop) {
    let answer_with = |body: &'static str, control: &'static str| {
        shop.origin.answer_with(move |_| Reply::html(body).header("edge-item", "mug").header("cache-control", control));
    };
    let purge = async |mode| {
        let purges = [Purge::Item(ItemId::parse("pan").unwrap())];
        purge(&shop.store.aside, &purges, mode).await.unwrap();
    };
    let visit = async || visit_from(shop, "203.0.113.1", "/products/pan").await;
    answer_with("old", "max-age=60, stale-while-revalidate=60");
    visit().await;
    assert!(is_hit(&visit().await));
    answer_with("new", "max-age=60, stale-while-revalidate=60");
    purge(PurgeMode::Soft).await;
    assert_eq!(visit().await.text().await.unwrap(), "old", "stale, while it is rendered again");
    assert_eq!(visit().await.text().await.unwrap(), "new");
    purge(PurgeMode::Hard).await;
    assert_eq!(cache_status(&visit().await), "edgefront; fwd=uri-miss; stored");

    // A purge during the render.
    purge(PurgeMode::Hard).await;
    shop.origin.hold();
    let asked = shop.origin.count();
    let change = async {
        eventually("the origin is asked", async || shop.origin.count() > asked).await;
        purge(PurgeMode::Hard).await;
        shop.origin.release();
    };
    join(visit(), change).await;
    assert_eq!(cache_status(&visit().await), "edgefront; fwd=uri-miss; stored", "the first render is not stored");

    // A purge of the hit-for-miss note.
    answer_with("new", "no-store");
    purge(PurgeMode::Hard).await;
    for expected in ["fwd=uri-miss", "fwd=bypass"] {
        assert_eq!(cache_status(&visit().await), format!("edgefront; {expected}; detail=no-store"));
    }
    purge(PurgeMode::Hard).await;
    // The isolate asks Redis behind this response.
    visit().await;
    assert_eq!(cache_status(&visit().await), "edgefront; fwd=uri-miss; detail=no-store");
}

async fn a_page_that_is_no_longer_named_is_no_items_page(shop: &Shop) {
    shows_mug(shop);
    make_popular(shop, "mug").await;
    for _ in ["named", "stored"] {
        visit_from(shop, "203.0.113.1", PAGE).await;
    }
    purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    shop.origin.answer(Reply::html("the mug is gone"));
    let answer = visit_from(shop, "203.0.113.2", PAGE).await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=no-item");
    assert_eq!(views(shop, "mug").await, "-1001", "one view of the page that showed it");
}

// The origin names a popular item on every URL, also on URLs that a visitor makes up.
async fn a_named_page_with_parameters_is_not_admitted_by_popularity(shop: &Shop) {
    shows_mug(shop);
    make_popular(shop, "mug").await;
    for query in ["x=1", "x=2", "x=1"] {
        let answer = visit_from(shop, "203.0.113.1", &format!("{PAGE}?{query}")).await;
        assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=parameters", "{query}");
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    assert_eq!(views(shop, "mug").await, "-1001");
}

async fn a_304_keeps_the_name_of_the_stored_page(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let reply = match asked.header("if-none-match") {
            "" => Reply::html("mug").header("edge-item", "mug"),
            _ => Reply::status(304),
        };
        reply.header("etag", "\"a\"").header("cache-control", "no-cache")
    });
    for network in ["203.0.113.1", "203.0.113.2", "203.0.113.3"] {
        assert_eq!(visit_from(shop, network, PAGE).await.text().await.unwrap(), "mug");
    }
    assert_eq!(shop.origin.last().header("if-none-match"), "\"a\"");
    assert_eq!(views(shop, "mug").await, "-3");
}

async fn a_name_that_is_no_item_id_is_ignored(shop: &Shop) {
    for name in ["", "a b", "a:b", "..", "mug, pan", "{mug}", &"x".repeat(65)] {
        let name = name.to_owned();
        shop.origin.answer_with(move |_| Reply::html("x").header("edge-item", &name));
        visit_from(shop, "203.0.113.1", PAGE).await;
    }
    assert_eq!(shop.store.raw(&["ZCARD", "viewed:"]).await, 0);
    shop.logged("the origin's header edge-item is invalid and was ignored: item must be 1 to 64 characters").await;
    shop.origin.answer(Reply::html("x").header("edge-item", "x".repeat(64)));
    visit_from(shop, "203.0.113.1", "/products/pan").await;
    assert_eq!(views(shop, &"x".repeat(64)).await, "-1");
}

async fn only_a_page_that_was_shown_is_a_view(shop: &Shop) {
    for (status, path) in [(404, PAGE), (302, "/b"), (500, "/c")] {
        shop.origin.answer(Reply::html("x").with_status(status).header("location", "/").header("edge-item", "mug"));
        visit_from(shop, "203.0.113.1", path).await;
    }
    shows_mug(shop);
    for method in [Method::HEAD, Method::POST] {
        shop.request(method, "/d").send().await.unwrap();
    }
    shop.settled().await;
    assert_eq!(shop.store.raw(&["ZCARD", "viewed:"]).await, 0);
}

async fn a_copy_of_the_isolate_counts_for_the_named_item(shop: &Shop) {
    shows_mug(shop);
    make_popular(shop, "mug").await;
    for network in ["203.0.113.1", "203.0.113.2"] {
        visit_from(shop, network, PAGE).await;
    }
    for network in ["203.0.113.3", "203.0.113.4"] {
        let request = shop.get(PAGE).header("cf-connecting-ip", network);
        assert!(is_hit(&request.send().await.unwrap()));
        assert_eq!(shop.blocking_requests().await, 0);
        shop.settled().await;
    }
    assert_eq!(views(shop, "mug").await, "-1004");
}

/// A stored page names its item. So another isolate can renew the stale page by the item's rank.
#[tokio::test]
async fn another_isolate_learns_the_item_from_the_stored_page() {
    let (store, origin) = (Store::new().await, TestOrigin::start());
    origin.answer(Reply::html("x").header("edge-item", "mug"));
    store.raw(&["ZADD", "viewed:", "-1000", "mug"]).await;
    let isolate = || store.app(&[("ORIGIN_URL", &origin.url()), ("PAGE_MEMORY", "0")]);
    let (one, other) = (isolate(), isolate());
    let visit = async |app| {
        let request = http::Request::get(format!("https://shop.example{PAGE}")).body(Body::Empty).unwrap();
        let answer = routes::handle(app, request).await;
        for work in answer.background {
            work.await;
        }
        let status = answer.response.headers()["cache-status"].to_str().unwrap().to_owned();
        (status.split("; ttl").next().unwrap().to_owned(), origin.count())
    };
    let expected = |status: &str, asked: usize| (format!("edgefront; {status}"), asked);
    assert_eq!(visit(&one).await, expected("fwd=bypass; detail=unpopular", 1));
    assert_eq!(visit(&one).await, expected("fwd=uri-miss; stored", 2));
    purge(&store.aside, &[Purge::All], PurgeMode::Soft).await.unwrap();
    assert_eq!(visit(&other).await, expected("hit", 3), "stale: rendered again after the response");
    assert_eq!(visit(&other).await, expected("hit", 3));
    purge(&store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    assert_eq!(visit(&other).await, expected("fwd=uri-miss; stored", 4));
}
