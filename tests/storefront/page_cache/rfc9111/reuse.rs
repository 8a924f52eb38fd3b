//! The stored responses, and the requests that they answer.

use http::Method;

use super::{ask, fresh, status};
use crate::{
    page_cache::{header, is_hit, stored_pages},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    a_page_that_states_freshness_is_stored_whatever_its_url,
    a_visitor_with_an_unknown_cookie_gets_only_pages_that_are_declared_shared,
    a_visitor_with_a_cookie_gets_an_unknown_page_before_it_is_shared,
    a_response_to_authorization_is_not_shared,
    an_unstorable_page_skips_the_lookup,
    directives_of_the_request_limit_the_pages_that_it_gets,
    an_error_with_freshness_is_stored_with_its_status,
    every_parameter_is_part_of_the_key,
    a_url_in_another_spelling_reaches_the_origin_unchanged,
    unkeyed_request_headers_do_not_change_a_stored_page,
    the_extension_of_a_static_file_does_not_store_a_personal_page,
    head_is_answered_from_a_stored_get,
}

// §3
async fn a_page_that_states_freshness_is_stored_whatever_its_url(shop: &Shop) {
    for (path, name, value) in [
        ("/a", "cache-control", "public, max-age=60"),
        ("/b", "cache-control", "s-maxage=60, max-age=0"),
        ("/c", "cdn-cache-control", "max-age=60"),
        ("/d", "cache-control", "max-age=60"),
        ("/e", "expires", "Fri, 01 Jan 2100 00:00:00 GMT"),
    ] {
        shop.origin.answer(Reply::html("page").header(name, value));
        assert_eq!(status(shop, path, &[]).await, "fwd=uri-miss; stored", "{name}: {value}");
        assert!(status(shop, path, &[]).await.starts_with("hit; ttl="), "{name}: {value}");
        assert!(status(shop, path, &[("cookie", "_ga=1")]).await.starts_with("hit; ttl="), "{name}: {value}");
    }
    assert_eq!(shop.origin.count(), 5);
}

async fn a_visitor_with_an_unknown_cookie_gets_only_pages_that_are_declared_shared(shop: &Shop) {
    for (path, name, value, is_declared) in [
        ("/a", "cache-control", "public, max-age=60", true),
        ("/b", "cache-control", "s-maxage=60", true),
        ("/c", "cdn-cache-control", "max-age=60", true),
        ("/d", "cache-control", "max-age=60", false),
        ("/e", "expires", "Fri, 01 Jan 2100 00:00:00 GMT", false),
    ] {
        shop.origin.answer_with(move |asked| Reply::html(asked.header("cookie").to_owned()).header(name, value));
        assert_eq!(status(shop, path, &[]).await, "fwd=uri-miss; stored", "{name}: {value}");
        let (status, body) = ask(shop, path, &[("cookie", "own=1")]).await;
        assert_eq!(status.starts_with("hit"), is_declared, "{name}: {value}: {status}");
        assert_eq!(body, if is_declared { "" } else { "own=1" }, "{name}: {value}");
    }
}

async fn a_visitor_with_a_cookie_gets_an_unknown_page_before_it_is_shared(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.header("cookie") {
        "" => fresh("hello", "public, max-age=60"),
        _ => fresh("hello, you", "public, max-age=60"),
    });
    let (status, body) = ask(shop, "/page", &[("cookie", "own=1")]).await;
    assert_eq!((status.as_str(), body.as_str()), ("fwd=uri-miss; detail=personal", "hello, you"));
    // The response was declared shared, so edgefront renders the page for all visitors afterwards.
    assert_eq!((shop.origin.count(), shop.origin.last().header("cookie")), (2, ""));
    let (status, body) = ask(shop, "/page", &[("cookie", "own=1")]).await;
    assert!(status.starts_with("hit"), "{status}");
    assert_eq!(body, "hello");

    shop.origin.answer(fresh("yours", "private"));
    assert_eq!(ask(shop, "/account", &[("cookie", "own=1")]).await.0, "fwd=uri-miss; detail=private");
    assert_eq!(shop.origin.count(), 3);
}

// §3.5
async fn a_response_to_authorization_is_not_shared(shop: &Shop) {
    shop.origin.answer(fresh("secret", "public, max-age=60"));
    let authorized = [("authorization", "Basic eDp5")];
    assert_eq!(status(shop, "/page", &authorized).await, "fwd=request; detail=authorization");
    shop.origin.answer(fresh("for all", "max-age=60"));
    assert_eq!(ask(shop, "/page", &[]).await.1, "for all");
    assert_eq!(status(shop, "/page", &authorized).await, "fwd=request; detail=authorization");
    assert_eq!(shop.origin.last().header("authorization"), "Basic eDp5");
}

async fn an_unstorable_page_skips_the_lookup(shop: &Shop) {
    shop.origin.answer(fresh("yours", "private, max-age=60"));
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; detail=private");
    let before = shop.store.counts().requests;
    assert_eq!(status(shop, "/page", &[("accept-language", "fr")]).await, "fwd=bypass; detail=private");
    assert_eq!(shop.store.counts().requests, before, "neither before nor behind the answer");
    assert_eq!(shop.origin.last().header("accept-language"), "fr", "as the visitor's own");
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

// §5.2.1
async fn directives_of_the_request_limit_the_pages_that_it_gets(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60").header("age", "20"));
    assert_eq!(
        status(shop, "/page", &[("cache-control", "only-if-cached")]).await,
        "fwd=uri-miss; detail=only-if-cached"
    );
    assert_eq!(shop.origin.count(), 0);
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
    for (control, is_enough) in [
        ("only-if-cached", true),
        ("max-age=30", true),
        ("max-age=10", false),
        ("min-fresh=10", true),
        ("min-fresh=50", false),
        ("max-age=0", false),
        ("no-cache", false),
        ("no-cache=\"x\", max-stale", false),
        ("no-store", false),
        ("only-if-cached, max-age=0", false),
        ("nothing-to-see-here", true),
    ] {
        let status = status(shop, "/page", &[("cache-control", control)]).await;
        assert_eq!(status.starts_with("hit"), is_enough, "{control}: {status}");
        assert!(is_enough || status.starts_with("fwd=request"), "{control}: {status}");
    }
    assert!(status(shop, "/page", &[("pragma", "no-cache")]).await.starts_with("fwd=request"));
    let before = shop.origin.count();
    for (path, name) in [("/other", "x-a"), ("/other?_=1", "x-a"), ("/page", "authorization")] {
        let answer = shop.get(path).header("cache-control", "only-if-cached").header(name, "x").send().await.unwrap();
        let control = header(&answer, "cache-control");
        assert_eq!((answer.status().as_u16(), control.as_str()), (504, "private, no-store"), "{path} {name}");
    }
    assert_eq!(shop.origin.count(), before);
}

// §3, §4
async fn an_error_with_freshness_is_stored_with_its_status(shop: &Shop) {
    for code in [203, 301, 302, 404, 410, 503] {
        let path = format!("/{code}");
        shop.origin.answer(fresh("", "max-age=60").with_status(code).header("location", "/x"));
        for is_second in [false, true] {
            let answer = shop.visit(&path).await;
            assert_eq!((answer.status().as_u16(), is_hit(&answer)), (code, is_second));
            assert_eq!(header(&answer, "location"), "/x");
            shop.settled().await;
        }
    }
    shop.origin.answer(fresh("", "max-age=60, must-understand").with_status(499));
    assert_eq!(status(shop, "/499", &[]).await, "fwd=uri-miss; detail=status");
}

// RFC 9111 §2. The order of parameters may matter to the origin.
async fn every_parameter_is_part_of_the_key(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(&asked.path, "max-age=60"));
    for query in ["a=1&b=2", "b=2&a=1", "a=1&a=2", "a=1&a=2&utm_source=x"] {
        let (_, body) = ask(shop, &format!("/search?{query}"), &[]).await;
        assert_eq!(body, format!("/search?{}", query.trim_end_matches("&utm_source=x")));
    }
    assert_eq!(shop.origin.count(), 3);
    assert_eq!(status(shop, "/search?a=1&_=1", &[]).await, "fwd=bypass; detail=dynamic");
}

async fn a_url_in_another_spelling_reaches_the_origin_unchanged(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(&asked.path, "max-age=60"));
    assert_eq!(
        ask(shop, "/a%2fb?x=%41", &[]).await,
        ("fwd=uri-miss; detail=personal".to_owned(), "/a%2fb?x=%41".to_owned())
    );
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    assert_eq!(status(shop, "/a%2Fb?x=A", &[]).await, "fwd=uri-miss; stored");
    assert_eq!(ask(shop, "/a%2fb?x=%41", &[]).await.1, "/a%2Fb?x=A", "the same page");
}

// §7.1
async fn unkeyed_request_headers_do_not_change_a_stored_page(shop: &Shop) {
    let claims = [
        ("x-forwarded-host", "evil.example"),
        ("x-host", "evil.example"),
        ("x-original-url", "/admin"),
        ("x-rewrite-url", "/admin"),
        ("x-http-method-override", "POST"),
        ("forwarded", "host=evil.example"),
        ("origin", "https://evil.example"),
        ("x-api-key", "k"),
    ];
    shop.origin.answer_with(move |asked| {
        let echoed: Vec<_> = claims.iter().map(|(name, _)| asked.header(name)).collect();
        fresh(&echoed.concat(), "max-age=60")
    });
    let own_host = shop.url.strip_prefix("http://").unwrap();
    for (number, claim) in claims.iter().enumerate() {
        let path = format!("/page/{number}");
        ask(shop, &path, &[*claim]).await;
        let (status, body) = ask(shop, &path, &[]).await;
        assert_eq!(body, own_host, "{claim:?}: {status}");
    }
}

// Web cache deception
async fn the_extension_of_a_static_file_does_not_store_a_personal_page(shop: &Shop) {
    shop.origin.answer(Reply::html("ada's account"));
    for path in ["/account/x.css", "/account;x.js", "/account%2Fx.png", "/account/..%2fx.css"] {
        ask(shop, path, &[("cookie", "own=ada")]).await;
        ask(shop, path, &[]).await;
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

// RFC 9110 §9.3.2
async fn head_is_answered_from_a_stored_get(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    let head = async || shop.request(Method::HEAD, "/page").send().await.unwrap();
    assert!(!is_hit(&head().await));
    assert_eq!(shop.origin.last().method, Method::HEAD, "it passes where nothing is stored");
    shop.settled().await;
    ask(shop, "/page", &[]).await;
    let answer = head().await;
    assert_eq!((is_hit(&answer), header(&answer, "content-length").as_str()), (true, "4"));
}
