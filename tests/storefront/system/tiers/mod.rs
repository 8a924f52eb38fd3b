//! Two tiers: isolates near the visitors, and a home tier beside Redis.

mod batches;
mod failures;
mod spellings;
mod writes;

use std::io::{Read, Write};

use edgefront::page_cache::{Purge, PurgeMode, purge};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use futures_util::future::join_all;
use http::Method;
use serde_json::json;

use crate::{
    page_cache::{cache_status, header, is_hit, make_popular, rfc9111::fresh},
    routes::api::{Answer, Visitor, log_in, service, with_json},
    support::{Asked, Reply, Shop, Tiers, eventually},
    system::security::limits::{TWO_WINDOWS, WRITES},
};

/// Two isolates of an edge tier, a home tier, and the shop that they share.
async fn tiers(variables: &[(&str, &str)]) -> (Tiers<2>, Shop) {
    let shop = Shop::native(&[]).await;
    shop.origin.answer(Reply::html("page"));
    (shop.tiers(variables, false).await, shop)
}

/// A request to the same host at each isolate, so that all of them have the same pages.
fn at(shop: &Shop, method: Method, path: &str) -> reqwest::RequestBuilder {
    shop.request(method, path).header("host", "shop.example")
}

async fn visit(shop: &Shop, path: &str) -> reqwest::Response {
    at(shop, Method::GET, path).send().await.expect("an answer")
}

/// The hops without those of batches.
async fn hops(tiers: &Tiers<2>) -> Vec<String> {
    tiers.hops().await.into_iter().filter(|hop| !hop.ends_with("/_edge/tier")).collect()
}

/// The page of a mug, which is stored in Redis and held by the first isolate.
async fn open(tiers: &Tiers<2>) {
    make_popular(&tiers.home, "mug").await;
    let answer = visit(&tiers.edge[0], "/products/mug").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
    hops(tiers).await;
    assert!(is_hit(&visit(&tiers.edge[0], "/products/mug").await));
    hops(tiers).await;
}

#[tokio::test]
async fn a_hot_page_never_leaves_the_location() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    let cookie = log_in(&tiers.edge[0], "ada").await.cookie.expect("a cookie");
    hops(&tiers).await;
    for cookie in ["", cookie.as_str(), "_ga=GA1.1"] {
        let answer = at(&tiers.edge[0], Method::GET, "/products/mug").header("cookie", cookie).send().await.unwrap();
        assert!(is_hit(&answer) && answer.text().await.unwrap() == "page");
    }
    assert_eq!(hops(&tiers).await, Vec::<String>::new());
    // Another isolate asks once. The body comes from the location's cache.
    assert!(is_hit(&visit(&tiers.edge[1], "/products/mug").await));
    assert_eq!(hops(&tiers).await, ["GET /products/mug"]);
    assert!(is_hit(&visit(&tiers.edge[1], "/products/mug").await));
    assert_eq!((hops(&tiers).await.len(), shop.origin.count()), (0, 1));
}

#[tokio::test]
async fn a_change_that_passed_here_is_seen_here_though_this_home_isolate_does_not_know_it() {
    for (path, purges) in [("/products/mug", false), ("/_edge/v1/purge", true)] {
        let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
        open(&tiers).await;
        tiers.set_home_fault("elsewhere").await;
        assert_eq!(at(&tiers.edge[0], Method::POST, path).send().await.unwrap().status(), 204);
        tiers.set_home_fault("").await;
        if purges {
            purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
        }
        shop.origin.answer(Reply::html("changed"));
        for _ in 0..2 {
            assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "changed", "{path}");
        }
        tiers.home.settled().await;
        let of_others = visit(&tiers.home, "/products/mug").await;
        assert_eq!(of_others.text().await.unwrap(), "changed", "the isolate has learned it");
    }
}

#[tokio::test]
async fn conditions_ranges_and_head_are_answered_at_the_edge() {
    let (tiers, _shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    let etag = header(&visit(&tiers.edge[0], "/products/mug").await, "etag");
    for isolate in &tiers.edge {
        let ask = |name: &'static str, value: &str| {
            at(isolate, Method::GET, "/products/mug").header(name, value.to_owned()).send()
        };
        let answer = ask("if-none-match", &etag).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (304, ""));
        let answer = ask("range", "bytes=1-2").await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (206, "ag"));
        let answer = at(isolate, Method::HEAD, "/products/mug").send().await.unwrap();
        assert_eq!((is_hit(&answer), header(&answer, "content-length").as_str()), (true, "4"));
    }
    assert_eq!(hops(&tiers).await, ["GET /products/mug"], "the second isolate's first question");
}

#[tokio::test]
async fn a_cart_write_takes_one_hop_and_is_seen_everywhere_at_once() {
    let (tiers, _shop) = tiers(&[]).await;
    let [one, other] = &tiers.edge;
    let write = Visitor::new(one).request(Method::POST, "/cart/items");
    let answer = Answer::to(with_json(write, &json!({"id": "mug", "quantity": 2}))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(hops(&tiers).await, ["POST /_edge/v1/cart/items"]);
    let cookie = answer.cookie().expect("a guest's cookie");
    let cart = Answer::to(Visitor::with_cookie(other, cookie.clone()).request(Method::GET, "/cart")).await;
    assert_eq!(cart.json["items"], json!([{"id": "mug", "quantity": 2}]));
    assert_eq!(hops(&tiers).await, ["GET /_edge/v1/cart"]);
}

#[tokio::test]
async fn a_login_and_a_logout_are_seen_everywhere_at_once() {
    let (tiers, shop) = tiers(&[("PATHS_PERSONAL", "/account")]).await;
    shop.origin.answer_with(|asked: &Asked| Reply::html(format!("user {}", asked.header("edge-user"))));
    let [one, other] = &tiers.edge;
    for (first, second) in [(one, other), (other, one)] {
        let cookie = log_in(first, "ada").await.cookie.expect("a cookie");
        for isolate in [first, second] {
            let page = at(isolate, Method::GET, "/account").header("cookie", &cookie).send().await.unwrap();
            assert_eq!(page.text().await.unwrap(), "user ada");
        }
        let end = Visitor::with_cookie(second, cookie.clone()).request(Method::DELETE, "/session");
        assert_eq!(Answer::to(end).await.status, 204);
        for isolate in [first, second] {
            let page = at(isolate, Method::GET, "/account").header("cookie", &cookie).send().await.unwrap();
            assert_eq!(page.text().await.unwrap(), "user ");
        }
    }
}

#[tokio::test]
async fn a_purge_is_seen_at_once_where_it_passes() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    shop.origin.answer(Reply::html("new"));
    let answer = service(&tiers.edge[0], Method::POST, "/purge", Some(&json!({"all": true}))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "new");
}

/// The home tier's copy is old when the edge tier gets it. The ages in both memories together must stay within
/// `PAGE_MEMORY`.
#[tokio::test]
async fn a_purge_elsewhere_is_seen_within_the_time_of_one_memory() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "60")]).await;
    make_popular(&shop, "mug").await;
    let clock = async |offset| {
        for shop in tiers.edge.iter().chain([&tiers.home]) {
            shop.set_clock(offset).await;
        }
    };
    clock(0).await;
    visit(&tiers.edge[0], "/products/mug").await;
    hops(&tiers).await;
    purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    shop.origin.answer(Reply::html("new"));
    // Home answers from its memory and does not yet confirm its copy.
    clock(25_000).await;
    assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "page");
    clock(65_000).await;
    assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "new");
}

#[tokio::test]
async fn visits_that_go_on_wait_for_no_hop() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "60")]).await;
    open(&tiers).await;
    let mut offset = 0;
    for _ in 0..6 {
        offset += 31_000;
        for shop in tiers.edge.iter().chain([&tiers.home]) {
            shop.set_clock(offset).await;
        }
        assert!(is_hit(&visit(&tiers.edge[0], "/products/mug").await));
        // The confirmation follows the answer, and renders nothing.
        assert!(hops(&tiers).await.len() <= 1);
    }
    assert_eq!(shop.origin.count(), 1);
}

#[tokio::test]
async fn views_and_counts_travel_in_batches() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600"), ("VIEW_WINDOW", "0"), ("TRAFFIC_INTERVAL", "1")]).await;
    open(&tiers).await;
    let views = async || -> i64 {
        let score = shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await;
        -score.as_str().expect("a score").parse::<i64>().expect("whole views")
    };
    let before = views().await;
    let visits = (0..50).map(|_| visit(&tiers.edge[0], "/products/mug"));
    assert!(join_all(visits).await.iter().all(is_hit));
    let all = tiers.hops().await;
    assert!(all.len() <= 5 && all.iter().all(|hop| hop == "POST /_edge/tier"), "{all:?}");
    eventually("all views count", async || views().await == before + 50).await;
    let hits = async || {
        visit(&tiers.edge[0], "/products/mug").await;
        let traffic = service(&tiers.edge[0], Method::GET, "/traffic?minutes=5", None).await;
        traffic.json["totals"]["hit"].as_u64().expect("a number")
    };
    eventually("all hits count", async || hits().await >= 51).await;
}

#[tokio::test]
async fn the_touch_of_a_session_reaches_redis() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    let cookie = log_in(&tiers.edge[0], "ada").await.cookie.expect("a cookie");
    let page = at(&tiers.edge[0], Method::GET, "/products/mug").header("cookie", &cookie).send().await.unwrap();
    assert!(is_hit(&page));
    let token = cookie.trim_start_matches("__Host-session=").split('.').next().expect("a token");
    let viewed = format!("viewed:{token}");
    eventually("the session knows the item", async || {
        shop.store.raw(&["ZRANGE", &viewed, "0", "-1"]).await == json!(["mug"])
    })
    .await;
}

#[tokio::test]
async fn each_visitor_gets_own_parts_of_a_page() {
    let variables = [
        ("HOLES", "/products/* #mini <- /basket"),
        ("COOKIES_HOLES", "sid"),
        ("HOLES_WAIT_MS", "20000"),
        ("PAGE_MEMORY", "3600"),
    ];
    let (tiers, shop) = tiers(&variables).await;
    shop.origin.answer_with(|asked: &Asked| {
        let name = asked.header("cookie").strip_prefix("sid=").unwrap_or("guest").to_owned();
        Reply::html(format!("<div id=mini>{name}</div>")).header("vary", "Cookie")
    });
    open(&tiers).await;
    for name in ["ada", "bob"] {
        for isolate in &tiers.edge {
            let cookie = format!("sid={name}");
            let own = at(isolate, Method::GET, "/products/mug").header("cookie", cookie).send().await.unwrap();
            assert!(is_hit(&own));
            assert_eq!(own.text().await.unwrap(), format!("<div id=mini>{name}</div>"));
            let shared = visit(isolate, "/products/mug").await;
            assert_eq!(shared.text().await.unwrap(), "<div id=mini>guest</div>");
        }
    }
}

#[tokio::test]
async fn no_header_of_the_tiers_reaches_a_visitor_or_the_origin_and_none_of_theirs_counts() {
    let (tiers, shop) = tiers(&[]).await;
    make_popular(&shop, "mug").await;
    shop.origin.answer(Reply::html("page").header("edge-tier-page", "new 0").header("edge-tier-without-redis", ""));
    for path in ["/products/mug", "/products/mug", "/about", "/_edge/v1/session"] {
        let mut request = at(&tiers.edge[0], Method::GET, path);
        for name in
            ["edge-tier-key", "edge-tier-held", "edge-tier-confirm", "edge-tier-client", "edge-tier-without-redis"]
        {
            request = request.header(name, "198.51.100.9");
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert!(answer.headers().keys().all(|name| !name.as_str().starts_with("edge-")), "{path}: {answer:?}");
        hops(&tiers).await;
    }
    for asked in shop.origin.asked() {
        assert!(asked.headers.keys().all(|name| !name.as_str().starts_with("edge-tier")), "{asked:?}");
        assert!(asked.headers.values().all(|value| value != "198.51.100.9"), "{asked:?}");
    }
}

#[tokio::test]
async fn the_home_tier_refuses_requests_without_the_key() {
    let (tiers, shop) = tiers(&[]).await;
    open(&tiers).await;
    let count = shop.origin.count();
    for key in [None, Some(""), Some("AAAA"), Some("0M45ZIIerpr0R9BVpBlgIRwS6_avMzUhRiAe04dityE")] {
        for (method, path) in
            [(Method::GET, "/products/mug"), (Method::POST, "/_edge/tier"), (Method::GET, "/_edge/v1/session")]
        {
            let mut request = at(&tiers.entry, method, path).header("edge-tier-held", "").body("");
            if let Some(key) = key {
                request = request.header("edge-tier-key", key);
            }
            assert_eq!(request.send().await.unwrap().status(), 403, "{path} with {key:?}");
        }
    }
    // At the public side, such a request is a visitor's.
    let request = at(&tiers.home, Method::GET, "/products/mug").header("edge-tier-held", "");
    let answer = request.send().await.unwrap();
    assert_eq!(header(&answer, "edge-tier-page"), "");
    assert_eq!(answer.text().await.unwrap(), "page");
    assert_eq!(shop.origin.count(), count);
}

#[tokio::test]
async fn the_rate_limit_of_writes_holds_at_the_edge() {
    let shop = Shop::native(&[]).await;
    let tiers: Tiers<1> = shop.tiers(&[], true).await;
    let mug = json!({"id": "mug", "quantity": 1});
    let add = || {
        let request = Visitor::new(&tiers.edge[0]).request(Method::POST, "/cart/items");
        Answer::to(with_json(request.header("cf-connecting-ip", "203.0.113.7"), &mug))
    };
    // A run that crosses a minute may pass twice the limit.
    let sent = WRITES * TWO_WINDOWS + 30;
    let answers = join_all((0..sent).map(|_| add())).await;
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!(refused >= 30, "{refused}");
    let asked = tiers.hops().await.iter().filter(|hop| hop.ends_with("/cart/items")).count();
    assert_eq!(asked + refused, sent, "the edge tier refuses them itself");
}

#[tokio::test]
async fn bodies_pass_both_tiers_unchanged() {
    let (tiers, shop) = tiers(&[]).await;
    shop.origin.answer(Reply::echo());
    let large = "0123456789".repeat(200_000);
    let answer = at(&tiers.edge[0], Method::POST, "/echo").body(large.clone()).send().await.unwrap();
    assert!(answer.text().await.unwrap() == large);
    shop.origin.answer(fresh(&large, "private").header("set-cookie", "a=1").header("set-cookie", "b=2"));
    let answer = visit(&tiers.edge[0], "/download").await;
    let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert!(answer.text().await.unwrap() == large);
}

#[tokio::test]
async fn a_compressed_body_passes_both_tiers_once_compressed() {
    let (tiers, shop) = tiers(&[]).await;
    let text = "0123456789".repeat(1_000);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let page = Reply::html(gzip.finish().unwrap()).header("content-encoding", "gzip");
    shop.origin.answer(page.header("cache-control", "private"));
    let answer = at(&tiers.edge[0], Method::GET, "/about").header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(header(&answer, "content-encoding"), "gzip");
    let mut read = String::new();
    GzDecoder::new(&*answer.bytes().await.unwrap()).read_to_string(&mut read).unwrap();
    assert_eq!(read, text);
}
