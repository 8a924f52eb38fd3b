//! V14 Data protection: secrets in caches and URLs. More tests of cache poisoning and deception are in
//! `page_cache/rfc9111/reuse.rs` and `page_cache/admission.rs`.

use serde_json::json;

use crate::{
    routes::api::log_in,
    support::{Reply, SERVICE_KEY, Shop, scenarios},
};

scenarios! {
    &[("PAGE_MEMORY", "0")];
    a_personal_page_is_shared_under_no_spelling,
    no_secret_is_read_from_a_url,
    an_error_reveals_no_internal_detail,
    unkeyed_input_reaches_no_stored_page,
}

/// V14.2.2, V14.2.5: web cache deception. The origin serves the account's page under every path and states no caching
/// rule. A user requests a path that looks like a static file, then an anonymous visitor requests the same path.
async fn a_personal_page_is_shared_under_no_spelling(shop: &Shop) {
    let cookie = log_in(shop, "ada").await.cookie.unwrap();
    shop.origin.answer_with(|asked| match asked.header("edge-user") {
        "" => Reply::html("sign in"),
        user => Reply::html(format!("account of {user}")),
    });
    for item in ["account", "x.css"] {
        shop.store.raw(&["ZADD", "viewed:", "-1000", item]).await;
    }
    for path in [
        "/account/x.css",
        "/account;x.js",
        "/account%2Fx.png",
        "/account/..%2fx.css",
        "/static/..%2faccount",
        "/products/..%2faccount",
        "/products/%2e%2e/account",
        "/products/x.css%2f..%2f..%2faccount",
        "/products/x.css;/../../account",
        "/account?item=x.css",
        "/?item=x.css&item=account",
        "/account%00.css",
        "/account%3fx.css",
        "//account/x.css",
    ] {
        for _ in 0..2 {
            let hers = shop.get(path).header("cookie", &cookie).send().await.unwrap().text().await.unwrap();
            shop.settled().await;
            assert!(hers == "account of ada" || hers == "sign in", "{path}: {hers}");
            let others = shop.visit(path).await.text().await.unwrap();
            shop.settled().await;
            assert_eq!(others, "sign in", "{path}");
        }
    }
}

/// V14.2.1: no token, key or user is read from a URL.
async fn no_secret_is_read_from_a_url(shop: &Shop) {
    let cookie = log_in(shop, "ada").await.cookie.unwrap();
    let (_, value) = cookie.split_once('=').unwrap();
    for query in [format!("?{cookie}"), format!("?session={value}"), format!("?token={value}"), "?user=ada".to_owned()]
    {
        let session = shop.visit(&format!("/_edge/v1/session{query}")).await;
        assert_eq!(session.headers()["cache-control"], "private, no-store");
        assert_eq!(session.json::<serde_json::Value>().await.unwrap()["user"], json!(null), "{query}");
    }
    for query in [
        format!("?key={SERVICE_KEY}"),
        format!("?_token={SERVICE_KEY}"),
        format!("?authorization=Bearer+{SERVICE_KEY}"),
    ] {
        assert_eq!(shop.visit(&format!("/_edge/v1/stats{query}")).await.status(), 401, "{query}");
    }
    let by_cookie = shop.get("/_edge/v1/stats").header("cookie", format!("authorization=Bearer {SERVICE_KEY}"));
    assert_eq!(by_cookie.send().await.unwrap().status(), 401);
}

/// V16.5.1, V13.4.6: an error names no internal detail.
async fn an_error_reveals_no_internal_detail(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    for fault in [
        edgefront_gateway::Fault::Refuse,
        edgefront_gateway::Fault::Garbage,
        edgefront_gateway::Fault::ErrorBody("WRONGTYPE secret detail at 10.0.0.7".to_owned()),
    ] {
        shop.store.gateway.set_fault(Some(fault));
        for path in ["/session", "/cart", "/popular", "/readyz", "/rows/mug", "/items/mug/stats"] {
            let answer = ada.get(path).await;
            let told = answer.json.to_string().to_lowercase();
            assert_eq!(answer.status, 503, "{path}");
            for word in ["wrongtype", "secret", "10.0.0.7", "upstash", "127.0.0.1", ".rs", "panic", "lua", "login:"] {
                assert!(!told.contains(word), "{path}: {told}");
            }
        }
    }
    shop.store.gateway.set_fault(None);
    let headers = ada.get("/session").await.headers;
    assert!(!headers.contains_key("server") && !headers.contains_key("x-powered-by"), "{headers:?}");
}

/// V14.2.5: a shared render carries no header or body of the client, except the headers of `PAGE_FORWARD_HEADERS`. The
/// origin names those in `Vary` if its response depends on them (`page_cache/rfc9111/variants.rs`).
async fn unkeyed_input_reaches_no_stored_page(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let told: Vec<_> = asked.headers.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        Reply::html(format!("{} {} {}", asked.method, told.join(" "), String::from_utf8_lossy(&asked.body)))
            .header("cache-control", "max-age=60")
    });
    for (number, (name, value)) in [
        ("x-forwarded-host", "poison.example"),
        ("x-forwarded-proto", "poison"),
        ("x-forwarded-prefix", "/poison"),
        ("x-forwarded-for", "poison"),
        ("forwarded", "host=poison"),
        ("x-original-url", "/poison"),
        ("x-http-method-override", "poison"),
        ("x-method-override", "poison"),
        ("origin", "https://poison.example"),
        ("referer", "https://poison.example"),
        ("cf-connecting-ip", "203.0.113.99"),
        ("true-client-ip", "poison"),
        ("accept-encoding", "poison"),
        ("range", "bytes=0-poison"),
        ("if-none-match", "\"poison\""),
        ("edge-user", "poison"),
        ("cookie", "own=poison"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/page/{number}");
        for _ in 0..2 {
            let request = shop.get(&path).header(name, value).body("poison in the body of a GET");
            request.send().await.unwrap();
            shop.settled().await;
        }
        let page = shop.visit(&path).await.text().await.unwrap();
        assert!(!page.contains("poison") && !page.contains("203.0.113.99"), "{name}: {page}");
    }
}
