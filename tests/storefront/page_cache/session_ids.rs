//! Shops that write the id of a session into links for visitors without cookies. Two visitors never get the same id.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::Method;
use serde_json::json;

use super::{cache_status, header, stored_pages};
use crate::{
    routes::api::service,
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("PATHS_SHARED", "/shoes/*, /cups/*, /forms/*"),
        ("COOKIES_DROPPED", "JSESSIONID@/shoes/*, shopid@/shoes/*, last@/shoes/*, key@/forms/*"),
        ("CSRF_COOKIE", "csrftoken"),
        ("HOLES", "/forms/* [name=key] <- token"),
    ];
    a_page_with_the_id_of_a_session_is_not_shared,
    a_redirect_with_the_id_of_a_session_is_not_shared,
    a_response_with_the_token_of_a_session_in_a_header_is_not_shared,
    a_slow_page_with_the_id_of_a_session_is_not_shared,
    a_fragment_with_the_id_of_a_session_is_not_shared,
    a_304_with_the_id_of_a_session_is_not_shared,
    the_value_of_a_cookie_that_is_no_id_does_not_stop_sharing,
}

/// Each response contains another id.
fn ids() -> impl Fn() -> String + Send {
    let count = AtomicUsize::new(0);
    move || format!("0A1B2C3D4E5F6071{:016}", count.fetch_add(1, Ordering::SeqCst))
}

async fn a_page_with_the_id_of_a_session_is_not_shared(shop: &Shop) {
    for (path, name, cookie) in [
        ("/shoes/red", ";jsessionid=", "JSESSIONID="),
        ("/shoes/blue", "?shop=", "shopid="),
        ("/cups/mug", ";jsessionid=", ""),
        ("/cups/pan", "?PHPSESSID=", ""),
    ] {
        let next = ids();
        shop.origin.answer_with(move |_| {
            let id = next();
            let page = Reply::html(format!("<a href='/cart{name}{id}'>Cart</a>"));
            if cookie.is_empty() { page } else { page.header("set-cookie", format!("{cookie}{id}; Path=/; HttpOnly")) }
        });
        let mut seen = HashSet::new();
        for visit in 0..3 {
            let answer = shop.visit(path).await;
            assert!(cache_status(&answer).ends_with("; detail=personal"), "{path}: {}", cache_status(&answer));
            let own = header(&answer, "set-cookie");
            let body = answer.text().await.unwrap();
            let id = body.split(name).nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
            assert!(cookie.is_empty() || own.starts_with(&format!("{cookie}{id}")), "{path}: {own} and {id}");
            assert!(seen.insert(id.to_owned()), "{path}, visit {visit}: {id}");
            shop.settled().await;
        }
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    let explained = service(shop, Method::GET, "/cache?url=/shoes/blue", None).await.json;
    let expected = (json!("personal"), json!("the response contains the id of a session"));
    assert_eq!((explained["why"].clone(), explained["cause"].clone()), expected, "{explained:#}");
}

async fn a_redirect_with_the_id_of_a_session_is_not_shared(shop: &Shop) {
    let next = ids();
    shop.origin.answer_with(move |_| {
        let reply = Reply::status(302).header("cache-control", "max-age=60");
        reply.header("location", format!("/start;jsessionid={}", next()))
    });
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let answer = shop.visit("/old").await;
        assert!(seen.insert(header(&answer, "location")), "{}", cache_status(&answer));
        shop.settled().await;
    }
}

async fn a_response_with_the_token_of_a_session_in_a_header_is_not_shared(shop: &Shop) {
    for (path, name) in [("/shoes/1", "vendure-auth-token"), ("/shoes/2", "cart-token")] {
        let next = ids();
        shop.origin.answer_with(move |_| Reply::html("{}").header(name, next()));
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let answer = shop.visit(path).await;
            assert!(seen.insert(header(&answer, name)), "{}", cache_status(&answer));
            shop.settled().await;
        }
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn a_slow_page_with_the_id_of_a_session_is_not_shared(shop: &Shop) {
    let reply = Reply::then_held("<a href='/cart;jsessionid=0A1B2C3D4E5F", "6071'>Cart</a>");
    shop.origin.answer(reply.header("cache-control", "max-age=60"));
    shop.origin.hold();
    let answer = shop.visit("/page").await;
    shop.origin.release();
    answer.text().await.unwrap();
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    assert!(cache_status(&shop.visit("/page").await).ends_with("; detail=personal"));
}

async fn a_fragment_with_the_id_of_a_session_is_not_shared(shop: &Shop) {
    for (path, name, cookie) in [("/shoes/red", "?shop=", "shopid="), ("/cups/mug", ";jsessionid=", "")] {
        let next = ids();
        shop.origin.answer_with(move |asked| {
            if asked.path == path {
                let page = Reply::html("Shoes<esi:include src='/shoes/mini'/>").header("cache-control", "max-age=60");
                return page.header("surrogate-control", r#"content="ESI/1.0""#);
            }
            let id = next();
            let fragment =
                Reply::html(format!("<a href='/cart{name}{id}'>Cart</a>")).header("cache-control", "max-age=60");
            if cookie.is_empty() { fragment } else { fragment.header("set-cookie", format!("{cookie}{id}; Path=/")) }
        });
        let mut seen = HashSet::new();
        for visit in 0..3 {
            let answer = shop.visit(path).await;
            let status = cache_status(&answer);
            assert_eq!(status.starts_with("edgefront; hit"), visit > 0, "{path}: {status}");
            let body = answer.text().await.unwrap();
            assert!(body.starts_with(&format!("Shoes<a href='/cart{name}")), "{path}: {body}");
            assert!(seen.insert(body), "{path}, visit {visit}");
            shop.settled().await;
        }
    }
}

async fn a_304_with_the_id_of_a_session_is_not_shared(shop: &Shop) {
    let next = ids();
    shop.origin.answer_with(move |asked| {
        let reply = match asked.header("if-none-match") {
            "" => Reply::html("page").header("link", "</cart>"),
            _ => Reply::status(304).header("link", format!("</cart;jsessionid={}>", next())),
        };
        reply.header("etag", "\"a\"").header("cache-control", "max-age=0")
    });
    for _ in 0..3 {
        let answer = shop.visit("/page").await;
        assert_eq!(
            (answer.status().as_u16(), header(&answer, "link").as_str()),
            (200, "</cart>"),
            "{}",
            cache_status(&answer)
        );
        shop.settled().await;
    }
}

async fn the_value_of_a_cookie_that_is_no_id_does_not_stop_sharing(shop: &Shop) {
    let key = "a-key-that-the-form-repeats";
    for (path, cookie, body) in [
        ("/shoes/with-a-short-value", "shopid=summer".to_owned(), "summer".to_owned()),
        ("/shoes/enamel-mug-and-spoon", "last=enamel-mug-and-spoon".to_owned(), "enamel-mug-and-spoon".to_owned()),
        ("/shoes/script", "shopid=another-value-than-the-page".to_owned(), "url.indexOf(';jsessionid=')".to_owned()),
        ("/forms/1", format!("key={key}"), format!("<form><input type=hidden name=key value='{key}'></form>")),
        (
            "/forms/2",
            "csrftoken=edgefrontverifiestheoriginheader".to_owned(),
            "edgefrontverifiestheoriginheader".to_owned(),
        ),
    ] {
        shop.origin.answer_with(move |_| Reply::html(body.clone()).header("set-cookie", format!("{cookie}; Path=/")));
        assert_eq!(cache_status(&shop.visit(path).await), "edgefront; fwd=uri-miss; stored", "{path}");
        shop.settled().await;
    }
}
