//! The request of one client does not change the page for others, or take it away.

use super::{
    cache_status, is_hit, make_popular,
    rfc9111::{ask, fresh, status},
};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0"), ("CART_ROUTES", "/basket/*"), ("WRITES_PERSONAL", "+ /products/*")];
    a_known_page_is_rendered_without_the_headers_of_the_client_that_reloads_it,
    a_client_that_the_shop_blocks_keeps_the_page_from_nobody,
    a_visitor_with_cookies_keeps_no_page_from_the_others,
    a_reload_that_gets_no_page_leaves_the_stored_one,
    a_variant_that_cannot_be_stored_leaves_the_others,
    a_header_that_the_page_varies_on_and_edgefront_withholds_costs_one_request,
    a_script_that_accepts_no_html_costs_one_request,
    a_script_gets_no_html_of_a_page_that_cannot_be_stored,
    a_call_of_a_server_function_gets_no_response_to_a_request_without_its_header,
    headers_that_the_url_determines_select_no_variant,
    a_write_to_the_cart_a_login_or_a_logout_voids_no_page,
    a_page_from_redis_is_no_more_declared_shared_than_the_origins_response,
}

const RELOAD: (&str, &str) = ("cache-control", "no-cache");

async fn a_known_page_is_rendered_without_the_headers_of_the_client_that_reloads_it(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.header("user-agent") {
        "scanner" => Reply::html("go away").with_status(403),
        _ => fresh("page", "public, max-age=60"),
    });
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
    let scanner = [RELOAD, ("user-agent", "scanner")];
    assert_eq!(ask(shop, "/page", &scanner).await, ("fwd=request; stored".to_owned(), "page".to_owned()));
    assert!(is_hit(&shop.visit("/page").await));
}

async fn a_client_that_the_shop_blocks_keeps_the_page_from_nobody(shop: &Shop) {
    let blocked = [
        Reply::html("go away").with_status(403),
        fresh("are you a person?", "max-age=60").header("set-cookie", "challenge=1"),
        fresh("no shop for scanners", "no-store"),
    ];
    for (number, refusal) in blocked.into_iter().enumerate() {
        let path = format!("/page/{number}");
        shop.origin.answer_with(move |asked| match asked.header("user-agent") {
            "scanner" => refusal.clone(),
            _ => fresh("page", "public, max-age=60"),
        });
        let scanner = [("user-agent", "scanner")];
        status(shop, &path, &scanner).await;
        assert!(!status(shop, &path, &scanner).await.contains("stored"), "the note stays while it is right");
        assert!(status(shop, &path, &[]).await.starts_with("fwd=bypass"));
        shop.settled().await;
        assert_eq!(status(shop, &path, &[]).await, "fwd=uri-miss; stored");
        assert!(status(shop, &path, &scanner).await.starts_with("hit"));
    }
}

async fn a_visitor_with_cookies_keeps_no_page_from_the_others(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(asked.header("cookie"), "max-age=60").header("vary", "cookie"));
    assert_eq!(ask(shop, "/page", &[("cookie", "own=1")]).await.1, "own=1");
    let before = shop.origin.count();
    assert_eq!(ask(shop, "/page", &[]).await, ("fwd=uri-miss; stored".to_owned(), String::new()));
    assert_eq!(shop.origin.count(), before + 1);
}

async fn a_reload_that_gets_no_page_leaves_the_stored_one(shop: &Shop) {
    for reply in [fresh("yours", "private"), Reply::html("busy").with_status(429), Reply::status(404)] {
        shop.origin.answer(fresh("page", "max-age=60"));
        ask(shop, "/page", &[]).await;
        shop.origin.answer(reply);
        assert!(!status(shop, "/page", &[RELOAD]).await.contains("stored"));
        let (status, body) = ask(shop, "/page", &[]).await;
        assert!(status.starts_with("hit") && body == "page", "{status}: {body}");
    }
}

async fn a_variant_that_cannot_be_stored_leaves_the_others(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.header("accept-language") {
        "xx" => fresh("no such language", "no-store"),
        language => fresh(language, "max-age=60").header("vary", "accept-language"),
    });
    let german = [("accept-language", "de")];
    ask(shop, "/page", &german).await;
    assert_eq!(status(shop, "/page", &[("accept-language", "xx")]).await, "fwd=vary-miss; detail=no-store");
    assert!(status(shop, "/page", &german).await.starts_with("hit"));
    assert_eq!(status(shop, "/page", &[("accept-language", "fr")]).await, "fwd=vary-miss; stored");
}

async fn a_header_that_the_page_varies_on_and_edgefront_withholds_costs_one_request(shop: &Shop) {
    shop.origin
        .answer_with(|asked| fresh(asked.header("x-requested-with"), "max-age=60").header("vary", "x-requested-with"));
    ask(shop, "/page", &[]).await;
    let before = shop.origin.count();
    assert_eq!(ask(shop, "/page", &[("x-requested-with", "script")]).await.1, "script");
    assert_eq!(shop.origin.count(), before + 1);
    assert_eq!(ask(shop, "/page", &[]).await.1, "");
}

async fn a_script_that_accepts_no_html_costs_one_request(shop: &Shop) {
    make_popular(shop, "mug").await;
    answer_html_or_json(shop, "");
    assert_eq!(status(shop, "/products/mug", &[]).await, "fwd=uri-miss; stored");
    let before = shop.origin.count();
    assert_eq!(ask(shop, "/products/mug", &[("accept", "application/json")]).await.1, "{}");
    assert_eq!(shop.origin.count(), before + 1);
    assert_eq!(ask(shop, "/products/mug", &[]).await.1, "page");
}

async fn a_script_gets_no_html_of_a_page_that_cannot_be_stored(shop: &Shop) {
    make_popular(shop, "pan").await;
    answer_html_or_json(shop, "private");
    assert_eq!(ask(shop, "/products/pan", &[("accept", "application/json")]).await.1, "{}");
    assert_eq!(ask(shop, "/products/pan", &[]).await.1, "page");
}

async fn a_call_of_a_server_function_gets_no_response_to_a_request_without_its_header(shop: &Shop) {
    let declared = |body: &'static str| fresh(body, "public, max-age=60");
    let others = [
        // SolidStart mistakes the request for a form without JavaScript.
        declared("").with_status(302).header("location", "/"),
        // TanStack Start fails for data that is not an object. It marks a raw response only for its script.
        declared("failed").with_status(500).header("x-raw", "1"),
        declared("data"),
        Reply::zeros(4).header("content-type", "text/plain").header("cache-control", "max-age=60").header("x-raw", "1"),
    ];
    let call = [("x-server-fn", "true")];
    for (number, other) in others.into_iter().enumerate() {
        shop.origin.answer_with(move |asked| match asked.header("x-server-fn") {
            "" => other.clone(),
            _ => declared("data").header("x-raw", "1"),
        });
        let (path, before) = (format!("/_server?id={number}"), shop.origin.count());
        for _ in 0..3 {
            let answer = shop.get(&path).header(call[0].0, call[0].1).send().await.unwrap();
            assert!(!is_hit(&answer) && answer.headers().contains_key("x-raw"), "{number}: {}", cache_status(&answer));
            assert_eq!(answer.text().await.unwrap(), "data", "{number}");
            shop.settled().await;
        }
        assert_eq!(shop.origin.count(), before + 4, "{number}: one shared render");
    }
    shop.origin.answer(declared("data").header("x-raw", "1"));
    assert_eq!(status(shop, "/stock", &call).await, "fwd=uri-miss; detail=personal");
    assert!(status(shop, "/stock", &call).await.starts_with("hit"), "the header changes nothing");
}

fn answer_html_or_json(shop: &Shop, control: &'static str) {
    shop.origin.answer_with(move |asked| match asked.header("accept") {
        "application/json" => Reply::html("{}"),
        _ => fresh("page", control),
    });
}

async fn headers_that_the_url_determines_select_no_variant(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60").header("vary", "Host, X-Forwarded-Proto, X-Forwarded-Host"));
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
    assert!(status(shop, "/page", &[]).await.starts_with("hit"));
}

async fn a_write_to_the_cart_a_login_or_a_logout_voids_no_page(shop: &Shop) {
    make_popular(shop, "mug").await;
    for (path, is_voided) in [
        ("/basket/add", false),
        ("/login", false),
        ("/logout", false),
        ("/accounts/logout/", false),
        ("/graphql", false),
        ("/api/graphql/", false),
        ("/products/mug", false),
        ("/reviews/add", true),
    ] {
        shop.origin.answer(Reply::html("page"));
        shop.visit("/products/mug").await;
        shop.settled().await;
        shop.origin.answer(Reply::status(302).header("location", "/products/mug"));
        shop.request(http::Method::POST, path).body("x").send().await.unwrap();
        shop.settled().await;
        let answer = shop.visit("/products/mug").await;
        assert_eq!(!is_hit(&answer), is_voided, "{path}: {}", cache_status(&answer));
    }
}

async fn a_page_from_redis_is_no_more_declared_shared_than_the_origins_response(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        Reply::html(asked.header("cookie").to_owned()).header("expires", "Fri, 01 Jan 2100 00:00:00 GMT")
    });
    ask(shop, "/page", &[]).await;
    assert!(status(shop, "/page", &[]).await.starts_with("hit"));
    assert_eq!(ask(shop, "/page", &[("cookie", "own=1")]).await.1, "own=1");
}
