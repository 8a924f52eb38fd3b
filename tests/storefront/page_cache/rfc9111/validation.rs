//! The origin validates expired pages, and a 304 updates them.

use super::{ask, fresh};
use crate::{
    page_cache::{cache_status, header, is_hit},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    an_expired_page_is_validated_with_its_validators,
    the_origin_gets_no_etag_that_edgefront_generated,
    a_304_updates_the_stored_headers,
    a_client_with_the_current_page_gets_a_304,
    an_unsolicited_304_is_not_stored,
    a_first_conditional_request_brings_the_page_into_the_store,
}

// §4.3.1, §4.3.3
async fn an_expired_page_is_validated_with_its_validators(shop: &Shop) {
    let modified = "Sat, 21 Nov 2020 15:00:00 GMT";
    shop.origin.answer_with(move |asked| {
        let reply = match (asked.header("if-none-match"), asked.header("if-modified-since")) {
            ("\"a\"", _) | ("", "Sat, 21 Nov 2020 15:00:00 GMT") => Reply::status(304),
            _ => Reply::html(format!("{} {}", asked.path, asked.header("if-none-match"))),
        };
        let reply = reply.header("cache-control", "no-cache");
        match asked.path.as_str() {
            "/etag" => reply.header("etag", "\"a\""),
            "/modified" => reply.header("last-modified", modified),
            _ => reply.header("etag", "\"b\""),
        }
    });
    for path in ["/etag", "/modified"] {
        assert_eq!(ask(shop, path, &[]).await.0, "fwd=uri-miss; stored");
        for _ in 0..2 {
            let (status, body) = ask(shop, path, &[]).await;
            assert_eq!((status.as_str(), body), ("fwd=stale; fwd-status=304; stored", format!("{path} ")));
        }
    }
    ask(shop, "/changed", &[]).await;
    assert_eq!(ask(shop, "/changed", &[]).await, ("fwd=stale; stored".to_owned(), "/changed \"b\"".to_owned()));
}

async fn the_origin_gets_no_etag_that_edgefront_generated(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    ask(shop, "/page", &[]).await;
    ask(shop, "/page", &[("cache-control", "no-cache")]).await;
    assert_eq!((shop.origin.count(), shop.origin.last().header("if-none-match")), (2, ""));
}

// §3.2, §4.3.4
async fn a_304_updates_the_stored_headers(shop: &Shop) {
    shop.origin.answer(
        fresh("page", "no-cache").header("etag", "\"a\"").header("x-old", "1").header("x-both", "1").header("age", "7"),
    );
    ask(shop, "/page", &[]).await;
    shop.origin.answer(
        Reply::status(304)
            .header("cache-control", "max-age=60")
            .header("etag", "\"a\"")
            .header("x-both", "2")
            .header("content-length", "9")
            .header("edge-tags", "new"),
    );
    ask(shop, "/page", &[]).await;
    let answer = shop.visit("/page").await;
    assert!(super::super::is_hit(&answer));
    let of = |name| header(&answer, name);
    assert_eq!([of("x-old"), of("x-both"), of("content-length"), of("age")], ["1", "2", "4", "0"]);
    assert_eq!(of("cache-control"), "max-age=60");
    assert_eq!(answer.text().await.unwrap(), "page");
}

// RFC 9110 §13
async fn a_client_with_the_current_page_gets_a_304(shop: &Shop) {
    let modified = "Sat, 21 Nov 2020 15:00:00 GMT";
    shop.origin.answer(fresh("page", "max-age=60").header("etag", "W/\"a\"").header("last-modified", modified));
    ask(shop, "/page", &[]).await;
    for (name, value, has_it) in [
        ("if-none-match", "\"b\", \"a\"", true),
        ("if-none-match", "*", true),
        ("if-none-match", "\"b\"", false),
        ("if-modified-since", modified, true),
        ("if-modified-since", "Fri, 20 Nov 2020 15:00:00 GMT", false),
    ] {
        let answer = shop.get("/page").header(name, value).send().await.unwrap();
        assert_eq!(answer.status() == 304, has_it, "{name}: {value}");
        assert_eq!(header(&answer, "etag"), "W/\"a\"");
    }
    assert_eq!(shop.origin.count(), 1);
}

async fn an_unsolicited_304_is_not_stored(shop: &Shop) {
    shop.origin.answer(Reply::status(304).header("cache-control", "max-age=60"));
    ask(shop, "/page", &[]).await;
    shop.origin.answer(fresh("page", "max-age=60"));
    assert_eq!(ask(shop, "/page", &[]).await.1, "page");
}

// RFC 9110 §15.4.5: a 304 has the headers of the 200.
async fn a_first_conditional_request_brings_the_page_into_the_store(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let control = if asked.path == "/account" { "private, max-age=60" } else { "max-age=60" };
        let reply = match asked.header("if-none-match") {
            "" => Reply::html(asked.header("cookie").to_owned()),
            _ => Reply::status(304),
        };
        reply.header("etag", "\"a\"").header("cache-control", control)
    });
    for (path, name, value, expected, stored) in [
        ("/page", "accept", "*/*", "personal", true),
        ("/other", "cookie", "basket=7", "personal", true),
        ("/account", "accept", "*/*", "private", false),
        ("/call", "x-server-call", "1", "status", false),
    ] {
        let request = shop.get(path).header("if-none-match", "\"a\"").header(name, value);
        let answer = request.send().await.unwrap();
        let status = cache_status(&answer);
        assert_eq!((answer.status().as_u16(), status), (304, format!("edgefront; fwd=uri-miss; detail={expected}")));
        shop.settled().await;
        let answer = shop.visit(path).await;
        assert_eq!((is_hit(&answer), answer.text().await.unwrap().as_str()), (stored, ""), "{path}");
        shop.settled().await;
    }
    // The condition holds for the stored page, too.
    let asked = shop.origin.count();
    let again = shop.get("/page").header("if-none-match", "\"a\"").send().await.unwrap();
    assert_eq!((again.status().as_u16(), shop.origin.count()), (304, asked));
}
