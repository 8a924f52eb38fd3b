//! V3 Web frontend security: the headers that browsers get, and the headers of browsers that edgefront believes.

use http::Method;
use serde_json::json;

use crate::{
    routes::api::{Answer, Visitor, log_in, with_json},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    every_way_to_a_session_guards_its_cookie,
    a_write_needs_headers_of_the_same_origin,
    no_other_site_reads_an_answer,
    no_answer_is_sniffed_framed_or_runs_scripts,
}

/// V3.3.1 `Secure`, V3.3.2 `SameSite`, V3.3.3 `__Host-`, V3.3.4 `HttpOnly`
async fn every_way_to_a_session_guards_its_cookie(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    let by_the_api = guest.put("/cart/items/mug", &json!({"quantity": 1})).await.header("set-cookie").to_owned();
    let mut cookies = vec![by_the_api];
    for said in [("edge-login", "ada"), ("edge-cart", r#"{"op":"add","id":"mug","quantity":1}"#), ("edge-logout", "1")]
    {
        shop.origin.answer(Reply::html("done").header(said.0, said.1));
        let answer = shop.request(Method::POST, "/form").header("cookie", "a=b").send().await.unwrap();
        let all: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
        assert_eq!((all.len(), &answer.headers()["cache-control"]), (1, &"private, no-store".parse().unwrap()));
        cookies.push(all[0].to_str().unwrap().to_owned());
    }
    for cookie in cookies {
        let mut parts = cookie.split("; ");
        assert!(parts.next().unwrap().starts_with("__Host-session="), "{cookie}");
        let mut attributes: Vec<_> = parts.filter(|part| !part.starts_with("Max-Age=")).collect();
        attributes.sort_unstable();
        // Any Domain would undo `__Host-`.
        assert_eq!(attributes, ["HttpOnly", "Path=/", "SameSite=Lax", "Secure"], "{cookie}");
    }
}

/// V3.5.1: a write needs `Sec-Fetch-Site: same-origin`, or without this header an `Origin` equal to the request's.
async fn a_write_needs_headers_of_the_same_origin(shop: &Shop) {
    let host = shop.url.strip_prefix("http://").unwrap();
    let (https, upper) = (format!("https://{host}"), shop.url.to_uppercase());
    let (slash, longer) = (format!("{}/", shop.url), format!("{}1", shop.url));
    let (user, listed) = (format!("http://me@{host}"), format!("{} https://evil.example", shop.url));
    let same = ("sec-fetch-site", "same-origin");
    let own = ("origin", shop.url.as_str());
    for headers in [
        &[][..],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", &https)],
        &[("origin", &upper)],
        &[("origin", &slash)],
        &[("origin", &longer)],
        &[("origin", &user)],
        &[("origin", &listed)],
        &[("origin", host)],
        &[own, ("origin", "https://evil.example")],
        &[("origin", "https://evil.example"), own],
        &[("referer", &shop.url)],
        &[("sec-fetch-site", "")],
        &[("sec-fetch-site", "SAME-ORIGIN")],
        &[("sec-fetch-site", "same-site"), own],
        &[("sec-fetch-site", "none"), own],
        &[same, ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-origin, cross-site")],
        &[("sec-fetch-mode", "same-origin")],
        &[("x-http-method-override", "GET"), ("origin", "null")],
    ] {
        for (method, path) in [(Method::PUT, "/cart/items/mug"), (Method::POST, "/views"), (Method::DELETE, "/session")]
        {
            let request = shop.request(method.clone(), &format!("/_edge/v1{path}"));
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let answer = with_json(request, &json!({"quantity": 1, "item": "mug"})).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{method} {path} {headers:?}");
        }
    }
    assert_eq!(shop.store.counts().requests, 0, "nothing was done");
    for headers in [[same], [own]] {
        let request = shop.request(Method::DELETE, "/_edge/v1/cart");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        assert_eq!(request.send().await.unwrap().status(), 200, "{headers:?}");
    }
}

/// V3.4.2: no response has CORS headers, so scripts of other sites read nothing, and no preflight succeeds.
async fn no_other_site_reads_an_answer(shop: &Shop) {
    let ada = log_in(shop, "ada").await;
    for path in ["/session", "/cart", "/popular", "/readyz", "/nothing"] {
        for origin in ["https://evil.example", "null", &shop.url] {
            let answer = ada.request(Method::GET, path).header("origin", origin).send().await.unwrap();
            assert!(answer.headers().keys().all(|name| !name.as_str().starts_with("access-control-")), "{path}");
        }
        let preflight = shop.request(Method::OPTIONS, &format!("/_edge/v1{path}"));
        let preflight =
            preflight.header("origin", "https://evil.example").header("access-control-request-method", "PUT");
        let answer = preflight.send().await.unwrap();
        assert!(answer.status().is_client_error(), "{path}");
        assert!(answer.headers().keys().all(|name| !name.as_str().starts_with("access-control-")), "{path}");
    }
}

/// V3.2.1, V3.4.3, V3.4.4, V3.4.6: `nosniff` everywhere; error pages run no script, load nothing and refuse frames.
async fn no_answer_is_sniffed_framed_or_runs_scripts(shop: &Shop) {
    for path in ["/session", "/popular", "/readyz", "/nothing", "/cart/items", "/stats"] {
        let answer = Answer::to(shop.get(&format!("/_edge/v1{path}"))).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert!(answer.header("content-type").ends_with("json"), "{path}");
    }
    shop.origin.answer(Reply::nothing());
    for (accept, kind) in [("text/html", "text/html; charset=utf-8"), ("*/*", "application/problem+json")] {
        let answer = shop.get("/<script>?x=<script>").header("accept", accept).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()), (502, kind));
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!answer.text().await.unwrap().contains("script"));
    }
}
