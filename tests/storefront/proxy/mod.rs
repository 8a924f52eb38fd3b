//! Requests to any storefront: the headers that pass, the headers that do not, and failures of the origin.

mod cart;
mod foreign;
mod reservation;
mod websockets;

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{future::join, stream};
use http::Method;

use crate::support::{Reply, Shop, TestOrigin, cookie_pairs, eventually, scenarios, set_cookie};

scenarios! {
    &[("ORIGIN_TIMEOUT", "4")];
    a_request_reaches_the_origin_unchanged,
    a_method_that_no_storefront_needs_never_reaches_the_origin,
    hop_by_hop_headers_are_not_forwarded,
    no_client_sends_edge_headers_and_no_visitor_gets_them,
    the_origin_gets_all_cookies_except_edgefronts,
    the_origin_learns_the_state_of_the_session_or_that_the_render_is_shared,
    forwarding_headers_of_a_client_do_not_reach_the_origin,
    a_response_is_streamed,
    a_request_body_is_streamed,
    a_get_with_a_body_reaches_the_origin,
    a_redirect_is_passed_on,
    each_response_has_cache_control,
    an_origin_that_is_down_is_a_502_and_a_late_one_a_504,
    an_invalid_status_is_a_502,
    a_truncated_response_ends_with_an_error,
    the_origin_logs_a_visitor_in_and_out,
    a_login_or_logout_that_redis_refuses_is_a_503,
}

async fn a_request_reaches_the_origin_unchanged(shop: &Shop) {
    let path = "/a%2fB//c;d?x=%20&y&&z=1&x=+";
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        shop.origin.answer(Reply::html("made").with_status(201).header("x-answer", "café"));
        let body = if method == Method::GET { "" } else { "a body" };
        let request = shop.request(method.clone(), path).header("x-asked", "yes").header("x-empty", "");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["x-answer"].as_bytes()), (201, "café".as_bytes()));
        assert_eq!(answer.text().await.unwrap(), "made");
        let asked = shop.origin.last();
        assert_eq!((asked.method, asked.path.as_str(), asked.body.as_ref()), (method, path, body.as_bytes()));
        assert_eq!(asked.headers["x-asked"], "yes");
        assert_eq!(asked.headers["x-empty"], "");
        assert_eq!(asked.headers["x-forwarded-host"], shop.url.strip_prefix("http://").unwrap());
        assert_eq!(asked.headers["x-forwarded-proto"], "http");
        assert_eq!(asked.headers["host"], shop.origin.url().strip_prefix("http://").unwrap());
    }
}

/// RFC 9110 §9.3.8: a TRACE response quotes the request, and the origin's request contains `Edge-Key`.
async fn a_method_that_no_storefront_needs_never_reaches_the_origin(shop: &Shop) {
    shop.origin.answer(Reply::html("reached"));
    for (name, path) in [("TRACE", "/about"), ("TRACE", "/cart"), ("TRACK", "/about"), ("PROPFIND", "/"), ("get", "/")]
    {
        let method = Method::from_bytes(name.as_bytes()).unwrap();
        let answer = shop.request(method, path).header("accept", "text/html").send().await.unwrap();
        // The platform itself refuses some methods with 501, and corrects the case of others.
        let status = answer.status().as_u16();
        assert!(status == 405 || status == 501 || name == "get" && status == 200, "{name} {path}: {status}");
        if status == 405 {
            assert_eq!(answer.headers()["allow"], "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", "{name}");
            assert_eq!(answer.headers()["cache-control"], "private, no-store", "{name}");
        }
        assert!(name == "get" || shop.origin.count() == 0, "{name} {path} reached the origin");
    }
    let traced = shop.request(Method::TRACE, "/about").send().await.unwrap();
    assert_eq!(
        (traced.status().as_u16(), traced.headers()["content-type"].as_bytes()),
        (405, &b"application/problem+json"[..])
    );
}

async fn hop_by_hop_headers_are_not_forwarded(shop: &Shop) {
    shop.origin.answer(
        Reply::html("x")
            .header("connection", "x-hop")
            .header("x-hop", "1")
            .header("keep-alive", "5")
            .header("x-end", "2"),
    );
    let request = shop.get("/about").header("connection", "keep-alive, X-Private").header("x-private", "1");
    let request = request.header("te", "trailers").header("proxy-authorization", "Basic eDp5").header("x-end", "1");
    let answer = request.send().await.unwrap();
    for name in ["x-hop", "keep-alive"] {
        assert!(!answer.headers().contains_key(name), "{name}");
    }
    assert_eq!(answer.headers()["x-end"], "2");
    let asked = shop.origin.last();
    for name in ["x-private", "te", "proxy-authorization", "keep-alive"] {
        assert_eq!(asked.header(name), "", "{name}");
    }
    assert_eq!(asked.header("x-end"), "1");
}

async fn no_client_sends_edge_headers_and_no_visitor_gets_them(shop: &Shop) {
    shop.origin.answer(Reply::html("x").header("edge-order", "{}").header("edge-tags", "a").header("edge-other", "b"));
    let request = shop.get("/about").header("edge-user", "ada").header("edge-key", "guessed").header("edge-x", "1");
    // A storefront with CGI names reads both headers as `HTTP_EDGE_USER`.
    let answer = request.header("edge_user", "ada").send().await.unwrap();
    assert!(answer.headers().keys().all(|name| !name.as_str().starts_with("edge-")), "{:?}", answer.headers());
    let asked = shop.origin.last();
    assert_eq!((asked.header("edge-user"), asked.header("edge_user"), asked.header("edge-x")), ("", "", ""));
    assert_eq!(asked.header("edge-key"), crate::support::ORIGIN_KEY);
    assert_eq!(asked.headers.get_all("edge-key").iter().count(), 1);
}

async fn the_origin_learns_the_state_of_the_session_or_that_the_render_is_shared(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/login" => Reply::html("hello").header("edge-login", "ada"),
        "/add" => Reply::html("added").header("edge-cart", r#"{"op":"add","id":"mug","quantity":1}"#),
        _ => Reply::html("page").header("cache-control", "private"),
    });
    let told = async |cookie: &str| {
        shop.request(Method::POST, "/account").header("cookie", cookie).send().await.unwrap();
        let asked = shop.origin.last();
        (
            asked.header("edge-session").to_owned(),
            asked.header("edge-user").to_owned(),
            asked.header("edge-shared").to_owned(),
        )
    };
    let expected = |session: &str, user: &str| (session.to_owned(), user.to_owned(), String::new());
    assert_eq!(told("").await, expected("none", ""));
    assert_eq!(told("__Host-session=forged.mac").await, expected("none", ""));
    let guest = set_cookie(&shop.request(Method::POST, "/add").send().await.unwrap());
    assert_eq!(told(&guest).await, expected("guest", ""));
    let user = set_cookie(&shop.request(Method::POST, "/login").send().await.unwrap());
    assert_eq!(told(&user).await, expected("user", "ada"));
    shop.store.gateway.set_fault(Some(edgefront_gateway::Fault::Status(500, "{}".to_owned())));
    assert_eq!(told(&user).await, expected("unknown", ""), "Redis is silent: no logout");
    assert_eq!(told("").await, expected("none", ""));
    shop.store.gateway.set_fault(None);

    shop.visit("/page").await;
    let asked = shop.origin.last();
    assert_eq!((asked.header("edge-shared"), asked.header("edge-session")), ("1", ""));
}

async fn forwarding_headers_of_a_client_do_not_reach_the_origin(shop: &Shop) {
    let claims = [
        "x-forwarded-for",
        "x-real-ip",
        "forwarded",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "true-client-ip",
        "proxy-client-ip",
        "wl-proxy-client-ip",
        "x-originating-ip",
        "x-original-forwarded-for",
        "x-client-ip",
        "x-original-url",
        "x-rewrite-url",
        "x-host",
        "x_forwarded_for",
        "x_forwarded-host",
        "x.forwarded.proto",
        "x_real_ip",
        "cf_connecting_ip",
        "proxy",
    ];
    for method in [Method::GET, Method::POST] {
        let mut request = shop.request(method, "/about").header("cf-connecting-ip", "203.0.113.7");
        for name in claims {
            request = request.header(name, "198.51.100.1").header(name, "evil.example");
        }
        // A client may remove only its own headers with `Connection`.
        request = request.header("connection", "CF-Connecting-IP");
        request.header("cookie", "own=1").send().await.unwrap();
        let asked = shop.origin.last();
        for name in claims {
            let expected = if matches!(name, "x-forwarded-for" | "x-real-ip") { "203.0.113.7" } else { "" };
            assert_eq!(asked.header(name), expected, "{name}");
            assert!(asked.headers.get_all(name).iter().count() <= 1, "{name}");
        }
    }
}

async fn the_origin_gets_all_cookies_except_edgefronts(shop: &Shop) {
    let request = shop.get("/about").header("cookie", "a=b; __Host-session=forged.mac; c=\"d e\"");
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(shop.origin.last().header("cookie"), "a=b; c=\"d e\"");
}

async fn a_response_is_streamed(shop: &Shop) {
    shop.origin.hold();
    shop.origin.answer(Reply::then_held("first", "rest"));
    let mut answer = shop.visit("/export").await;
    let first = answer.chunk().await.unwrap().unwrap();
    assert_eq!(first, "first", "before the origin has sent the rest");
    shop.origin.release();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "rest");
    assert!(answer.chunk().await.unwrap().is_none());

    shop.origin.answer(Reply::zeros(8 << 20));
    assert_eq!(shop.visit("/export").await.bytes().await.unwrap().len(), 8 << 20);
}

async fn a_request_body_is_streamed(shop: &Shop) {
    shop.origin.answer(Reply::html("thanks"));
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let chunks =
        stream::unfold(receiver, async |mut receiver| Some((Ok::<_, Infallible>(receiver.recv().await?), receiver)));
    let upload = shop.request(Method::POST, "/import").body(reqwest::Body::wrap_stream(chunks)).send();
    let feed = async {
        for _ in 0..4 {
            sender.send(vec![7; 1 << 20].into()).await.unwrap();
        }
        // Sockets on the way buffer some bytes. The origin must get most of the rest before the upload ends.
        eventually("the origin receives", async || shop.origin.received() > 2 << 20).await;
        for _ in 0..4 {
            sender.send(vec![7; 1 << 20].into()).await.unwrap();
        }
        drop(sender);
    };
    let (answer, ()) = join(upload, feed).await;
    assert_eq!(answer.unwrap().text().await.unwrap(), "thanks");
    assert!(shop.origin.last().body.iter().eq(std::iter::repeat_n(&7, 8 << 20)));
}

async fn a_get_with_a_body_reaches_the_origin(shop: &Shop) {
    let answer = shop.get("/search").body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(shop.origin.last().method, Method::GET);
}

async fn a_redirect_is_passed_on(shop: &Shop) {
    let own = shop.origin.url();
    for (location, passed) in [
        ("https://elsewhere.example/x".to_owned(), "https://elsewhere.example/x"),
        ("/cart?a=b#c".to_owned(), "/cart?a=b#c"),
        ("next".to_owned(), "next"),
        // With the origin's own address, the visitor would bypass edgefront.
        (format!("{own}/cart?a=b"), "/cart?a=b"),
        (own.clone(), "/"),
        (format!("{own}?a"), "/?a"),
        (format!("{own}1/cart"), &format!("{own}1/cart")),
        (own.replace("http", "HTTP") + "/cart", "/cart"),
        (own.replace("http:", "") + "/cart", "/cart"),
        // The origin serves no TLS, so this is another server.
        (own.replace("http", "https") + "/cart", &(own.replace("http", "https") + "/cart")),
        (own.replace("//", "//ada@") + "/cart", &(own.replace("//", "//ada@") + "/cart")),
        // Browsers read all of these as two slashes, and the next segment as a host.
        (format!("{own}//elsewhere.example"), &format!("{own}//elsewhere.example")),
        (format!("{own}/\\elsewhere.example"), &format!("{own}/\\elsewhere.example")),
        (format!("{own}/\t/elsewhere.example"), &format!("{own}/\t/elsewhere.example")),
    ] {
        shop.origin.answer(Reply::status(302).header("location", &location).header("content-location", &location));
        let answer = shop.visit("/old").await;
        assert_eq!(answer.status(), 302);
        for name in ["location", "content-location"] {
            assert_eq!(answer.headers()[name].to_str().unwrap(), passed);
        }
    }
    assert!(shop.origin.asked().iter().all(|asked| asked.path == "/old"), "no redirect is followed");
}

async fn each_response_has_cache_control(shop: &Shop) {
    for (reply, cache_control) in [
        (Reply::html("x"), "private, no-cache"),
        (Reply::html("x").header("cache-control", "public, max-age=60"), "public, max-age=60"),
        (Reply::html("x").header("expires", "Sat, 21 Nov 2026 15:00:00 GMT"), "private"),
        (Reply::html("x").with_status(404), "private, no-cache"),
    ] {
        shop.origin.answer(reply);
        assert_eq!(shop.visit("/about").await.headers()["cache-control"], cache_control);
    }
}

async fn an_origin_that_is_down_is_a_502_and_a_late_one_a_504(shop: &Shop) {
    for (reply, status) in [(Reply::nothing(), 502), (Reply::html("late").after(Duration::from_mins(1)), 504)] {
        shop.origin.answer(reply);
        let for_people = shop.get("/about").header("accept", "text/html").send();
        let (for_people, for_programs) = join(for_people, shop.visit("/about")).await;
        let for_people = for_people.unwrap();
        assert_eq!((for_people.status().as_u16(), for_programs.status().as_u16()), (status, status));
        assert_eq!(for_programs.headers()["content-type"], "application/problem+json");
        assert_eq!(for_programs.headers()["cache-control"], "private, no-store");
        assert_eq!(for_people.headers()["content-type"], "text/html; charset=utf-8");
        assert!(for_people.text().await.unwrap().contains("try again"));
    }
}

async fn an_invalid_status_is_a_502(shop: &Shop) {
    for status in [600, 999] {
        shop.origin.answer(Reply::status(status));
        assert_eq!(shop.visit("/about").await.status(), 502, "{status}");
    }
}

async fn a_truncated_response_ends_with_an_error(shop: &Shop) {
    shop.origin.answer(Reply::truncated("half of it"));
    let answer = shop.visit("/export").await;
    assert!(answer.bytes().await.is_err(), "a body cut short must not look whole");
}

async fn the_origin_logs_a_visitor_in_and_out(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/login" => {
            Reply::status(303).header("location", "/").header("edge-login", "ada").header("set-cookie", "own=1")
        }
        "/logout" => Reply::status(303).header("location", "/").header("edge-logout", "1"),
        _ => Reply::html(asked.header("edge-user").to_owned()),
    });
    let login = shop.request(Method::POST, "/login").send().await.unwrap();
    assert_eq!(
        (login.status().as_u16(), &login.headers()["cache-control"]),
        (303, &"private, no-store".parse().unwrap())
    );
    assert!(!login.headers().contains_key("edge-login"));
    assert_eq!(login.headers()["set-cookie"], "own=1");
    let [_, cookie] = cookie_pairs(login.headers())[..] else { panic!("two cookies: {login:?}") };
    assert!(cookie.starts_with("__Host-session="));

    let ask = async |path| shop.get(path).header("cookie", cookie).send().await.unwrap();
    assert_eq!(ask("/account").await.text().await.unwrap(), "ada");
    let logout = ask("/logout").await;
    assert!(logout.headers()["set-cookie"].to_str().unwrap().starts_with("__Host-session=; Max-Age=0;"));
    assert_eq!(ask("/account").await.text().await.unwrap(), "", "the cookie is worth nothing any more");
    shop.settled().await;
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 0);
}

async fn a_login_or_logout_that_redis_refuses_is_a_503(shop: &Shop) {
    for said in ["edge-login", "edge-logout"] {
        let cookie = session_cookie(shop).await;
        shop.origin.answer(Reply::status(303).header("location", "/").header(said, "1"));
        shop.store.gateway.set_fault(Some(edgefront_gateway::Fault::Status(500, "{}".to_owned())));
        let request = shop.get("/account").header("cookie", cookie).header("accept", "text/html,*/*");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 503, "{said}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8", "who sent a form reads a page");
        assert!(answer.headers().contains_key("retry-after") && !answer.headers().contains_key("set-cookie"));
        shop.store.gateway.set_fault(None);
    }
}

/// The cookie of a session that the origin started.
async fn session_cookie(shop: &Shop) -> String {
    shop.origin.answer(Reply::html("hello").header("edge-login", "ada"));
    let login = shop.visit("/login").await;
    set_cookie(&login)
}

#[tokio::test]
async fn an_origin_under_a_path_gets_requests_below_it() {
    let origin = TestOrigin::start();
    let shop = Shop::native(&[("ORIGIN_URL", &format!("{}/shop/", origin.url()))]).await;
    let own = origin.url();
    for (location, passed) in [
        (format!("{own}/shop/cart"), "/cart"),
        (format!("{own}/shop"), "/"),
        ("/shop/cart?a".to_owned(), "/cart?a"),
        ("/shopping".to_owned(), "/shopping"),
        ("/cart".to_owned(), "/cart"),
        (format!("{own}/other"), &format!("{own}/other")),
        ("/shop//elsewhere.example".to_owned(), "/shop//elsewhere.example"),
    ] {
        origin.answer(Reply::status(301).header("location", &location).header("set-cookie", "a=b; Path=/shop; Secure"));
        let answer = shop.visit("/old?a=b").await;
        assert_eq!(answer.headers()["location"].to_str().unwrap(), passed);
        assert_eq!(answer.headers()["set-cookie"].to_str().unwrap(), "a=b; Path=/; Secure");
        assert_eq!(origin.last().path, "/shop/old?a=b");
    }
}

#[tokio::test]
async fn an_origin_that_refuses_connections_is_a_502() {
    let shop = Shop::native(&[("ORIGIN_URL", "http://127.0.0.1:1")]).await;
    assert_eq!(shop.visit("/about").await.status(), 502);
    shop.logged("no connection").await;
}
