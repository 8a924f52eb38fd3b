//! Invalid requests, on any route: each gets a specific problem document and changes nothing.

use std::time::Duration;

use edgefront_gateway::Fault;
use http::Method;
use serde_json::json;

use super::{Answer, Visitor, log_in, service, with_json};
use crate::support::{SERVICE_KEY, Shop, scenarios};

scenarios!(&[("REDIS_TIMEOUT_MS", "1000")];
    an_unknown_path_or_method_is_refused,
    a_page_of_another_origin_cannot_write,
    a_service_route_needs_the_key,
    a_body_that_is_too_long_or_not_json_is_refused,
    head_is_get_without_the_body,
    every_response_has_cache_control,
    without_redis_a_503_says_when_to_retry,
);

async fn an_unknown_path_or_method_is_refused(shop: &Shop) {
    for path in [
        "/_edge//",
        "/_edge/dashboard",
        "/_edge/v2/cart",
        "/_edge/v1",
        "/_edge/v1/carts",
        "/_edge/v1/cart/",
        "/_edge/v1/a%00",
    ] {
        let answer = Answer::to(shop.get(path)).await;
        assert_eq!((answer.status, &answer.json["type"]), (404, &json!("urn:edgefront:no-such-path")), "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    for (method, path, allow) in [
        (Method::POST, "/session", "GET, HEAD, DELETE"),
        (Method::PATCH, "/cart/items/mug", "PUT, DELETE"),
        (Method::GET, "/cart/items", "POST"),
        (Method::OPTIONS, "/cart", "GET, HEAD, DELETE"),
        (Method::PUT, "/sessions", "GET, HEAD, DELETE, POST"),
    ] {
        let mut visitor = Visitor::new(shop);
        let answer = visitor.send(visitor.request(method.clone(), path)).await;
        assert_eq!((answer.status, answer.header("allow")), (405, allow), "{method} {path}");
    }
    assert_eq!(shop.origin.count(), 0);
}

async fn a_page_of_another_origin_cannot_write(shop: &Shop) {
    let put = |headers: &[(&str, &str)]| {
        let request = shop.request(Method::PUT, "/_edge/v1/cart/items/mug");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        with_json(request, &json!({"quantity": 1}))
    };
    for headers in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "cross-site"), ("origin", &shop.url)],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        // The service key does not open a visitor's route.
        &[("authorization", &format!("Bearer {SERVICE_KEY}"))],
    ] {
        let answer = Answer::to(put(headers)).await;
        assert_eq!((answer.status, &answer.json["type"]), (403, &json!("urn:edgefront:foreign-origin")), "{headers:?}");
    }
    assert_eq!(shop.store.counts().requests, 0);
    for headers in [[("sec-fetch-site", "same-origin")], [("origin", &*shop.url)]] {
        assert_eq!(put(&headers).send().await.expect("an answer").status(), 200, "{headers:?}");
    }
}

async fn a_service_route_needs_the_key(shop: &Shop) {
    for key in [None, Some(""), Some("wrong"), Some(&SERVICE_KEY[1..]), Some(&*format!("{SERVICE_KEY}x"))] {
        let mut request = shop.request(Method::POST, "/_edge/v1/sessions").header("sec-fetch-site", "same-origin");
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let answer = Answer::to(with_json(request, &json!({"user": "ada"}))).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer realm=\"edgefront\""), "{key:?}");
    }
    assert_eq!(shop.store.counts().requests, 0);
}

async fn a_body_that_is_too_long_or_not_json_is_refused(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    let typed = |content_type: &str, body: Vec<u8>| {
        Visitor::new(shop).request(Method::POST, "/cart/items").header("content-type", content_type).body(body)
    };
    let good = json!({"id": "mug", "quantity": 1}).to_string();
    let padded = |length: usize| format!("{good}{}", " ".repeat(length - good.len())).into_bytes();
    let application_json = "application/json; charset=utf-8";
    for (request, status, message) in [
        (typed("application/json", padded(64 * 1024 + 1)), 413, "more than 65536 bytes"),
        (typed("text/plain", good.clone().into()), 415, "application/json"),
        (typed("application/x-www-form-urlencoded", b"id=mug".to_vec()), 415, "application/json"),
        (typed(application_json, b"".to_vec()), 400, "EOF"),
        (typed(application_json, b"{\"id\": \"mug\"".to_vec()), 400, "EOF"),
        (typed(application_json, b"{\"id\": \"\xff\", \"quantity\": 1}".to_vec()), 400, "invalid unicode"),
        (typed(application_json, b"[\"mug\", 1]".to_vec()), 400, "not a JSON object"),
        (typed(application_json, br#"{"id":"mug","id":"cup","quantity":1}"#.to_vec()), 400, "given twice"),
        (typed(application_json, br#"{"id":"mug","quantity":1e999}"#.to_vec()), 400, "out of range"),
        (typed(application_json, br#"{"id":"mug","quantity":1,"price":0}"#.to_vec()), 422, "\"price\""),
    ] {
        let answer = guest.send(request).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json["detail"].as_str().is_some_and(|detail| detail.contains(message)), "{answer:?}");
    }
    assert_eq!(shop.store.counts().requests, 0);
    assert_eq!(guest.send(typed(application_json, padded(64 * 1024))).await.status, 200);
    // The limit holds without Content-Length, too, and the response does not wait for the end of the body.
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
    let request = guest.request(Method::POST, "/cart/items").header("content-type", "application/json");
    let answer = request.body(reqwest::Body::wrap_stream(endless)).send().await;
    // A response during the upload may reach the client as a closed connection.
    assert!(answer.map_or(true, |answer| answer.status() == 413));
}

async fn head_is_get_without_the_body(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let get = guest.get("/cart").await;
    let head = guest.send(guest.request(Method::HEAD, "/cart")).await;
    assert_eq!((head.status, head.header("etag"), &head.json), (200, get.header("etag"), &serde_json::Value::Null));
    assert_eq!(guest.send(guest.request(Method::HEAD, "/nothing")).await.status, 404);
}

async fn every_response_has_cache_control(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    for (path, cache) in [
        ("/healthz", "private, no-store"),
        ("/session", "private, no-store"),
        ("/cart", "private, no-store"),
        ("/recent", "private, no-store"),
        ("/popular", "public, max-age=10"),
        ("/rows?ids=mug", "no-cache"),
        ("/rows/mug", "private, no-store"),
        ("/readyz", "private, no-store"),
        ("/stats", "private, no-store"),
        ("/nothing", "private, no-store"),
    ] {
        assert_eq!(ada.get(path).await.header("cache-control"), cache, "{path}");
    }
    assert_eq!(service(shop, Method::GET, "/stats", None).await.header("cache-control"), "private, no-store");
}

async fn without_redis_a_503_says_when_to_retry(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    ada.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let quota = r#"{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000"}"#;
    // With these faults Redis executes nothing, so a failed write changes nothing.
    for fault in [
        Fault::Refuse,
        Fault::Status(500, "<h1>Bad gateway</h1>".to_owned()),
        Fault::Status(400, quota.to_owned()),
        Fault::Garbage,
        Fault::ErrorBody("LOADING Redis is loading the dataset in memory".to_owned()),
    ] {
        shop.store.gateway.set_fault(Some(fault.clone()));
        for answer in [
            ada.put("/cart/items/cup", &json!({"quantity": 1})).await,
            ada.delete("/session").await,
            ada.get("/session").await,
            ada.get("/cart").await,
        ] {
            assert_unavailable(&answer, &fault);
        }
    }
    for fault in [Fault::Slow(Duration::from_secs(5)), Fault::Truncate] {
        shop.store.gateway.set_fault(Some(fault.clone()));
        assert_unavailable(&ada.get("/cart").await, &fault);
    }
    shop.store.gateway.set_fault(None);
    assert_eq!(ada.get("/cart").await.json["items"], json!([{"id": "mug", "quantity": 1}]));
    assert_eq!(ada.get("/session").await.json["user"], "ada");
}

fn assert_unavailable(answer: &Answer, fault: &Fault) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"), "{fault:?}: {answer:?}");
    assert_eq!(
        answer.json["detail"], "the server failed to answer, and the request is not the cause: try again later",
        "{fault:?}"
    );
    assert_eq!(answer.header("set-cookie"), "", "{fault:?}");
}
