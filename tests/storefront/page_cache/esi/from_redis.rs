//! ESI in pages from Redis, without copies in the isolate. `ORIGIN_URL` has a path.

use http::Method;

use super::{asked_from, cache_status, is_hit, name, template};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[
        ("ORIGIN_URL", "{origin}/shop/"),
        ("HOLES", "/products/* #mini <- /basket"),
        ("COOKIES_HOLES", "sid"),
        ("HOLES_WAIT_MS", "20000"),
        ("PAGE_MEMORY", "0"),
    ];
    a_visitor_with_a_cookie_of_holes_gets_it_without_a_rule,
    the_path_of_the_origin_is_no_part_of_an_include,
    a_refused_response_to_a_change_voids_the_page,
}

async fn a_visitor_with_a_cookie_of_holes_gets_it_without_a_rule(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/shop/user" => Reply::html(name(asked).to_owned()),
        "/shop/about" => template("1<esi:include src='/user'/>2").header("cache-control", "public, max-age=60"),
        _ => Reply::html(format!("page of {}", name(asked))).header("cache-control", "public, max-age=60"),
    });
    for (path, shared) in [("/about", "1guest2"), ("/plain", "page of guest")] {
        assert_eq!(shop.visit(path).await.text().await.unwrap(), shared);
        shop.settled().await;
    }
    for name in ["ada", "bob"] {
        let answer = shop.get("/about").header("cookie", format!("sid={name}")).send().await.unwrap();
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("1{name}2"));
        // This page does not mark its personal parts.
        let answer = shop.get("/plain").header("cookie", format!("sid={name}")).send().await.unwrap();
        assert!(!is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("page of {name}"));
    }
    assert_eq!(shop.visit("/plain").await.text().await.unwrap(), "page of guest");
}

async fn the_path_of_the_origin_is_no_part_of_an_include(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/shop/about/us" => template(
            "<esi:include src='/shop/a?x=1'/><esi:include src='/b'/><esi:include src='c'/>\
             <esi:include src='/shopping'/><esi:include src='/gone' alt='/shop/d'/>",
        )
        .header("cache-control", "public, max-age=60"),
        "/shop/gone" => Reply::status(404),
        path => Reply::html(format!("{path};")),
    });
    let expected = "/shop/a?x=1;/shop/b;/shop/about/c;/shop/shopping;/shop/d;";
    assert_eq!(shop.visit("/about/us").await.text().await.unwrap(), expected);
    shop.settled().await;
    let before = shop.origin.count();
    let answer = shop.get("/about/us").header("cookie", "sid=ada").send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), expected);
    assert!(asked_from(shop, before).iter().all(|asked| asked.path != "/shop/about/us"));
}

async fn a_refused_response_to_a_change_voids_the_page(shop: &Shop) {
    let public = |reply: Reply| reply.header("cache-control", "public, max-age=60");
    shop.origin.answer_with(move |asked| match asked.method {
        Method::POST => template("<esi:vars/>"),
        _ => public(Reply::html("before")),
    });
    shop.visit("/about").await;
    shop.settled().await;
    assert!(is_hit(&shop.visit("/about").await));
    assert_eq!(shop.request(Method::POST, "/about").send().await.unwrap().status(), 502);
    shop.settled().await;
    shop.origin.answer_with(move |_| public(Reply::html("after")));
    assert_eq!(shop.visit("/about").await.text().await.unwrap(), "after");
}
