//! Holes: a shared page with one visitor's own parts, in front of an origin that does not know edgefront.

mod address;
mod cookie_paths;
mod facts;
mod itself;
mod late;
mod slow_forms;
mod token;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::join;
use http::Method;
use serde_json::json;

use super::{cache_status, header, is_hit, make_popular, name, visit};
use crate::{
    routes::api::log_in,
    support::{Asked, Reply, Shop, eventually, scenarios},
};

scenarios! {
    &[
        (
            "HOLES",
            "/products/* #mini <- /basket; /products/* [name=token] <- /basket; /products/* .user <- user; /products/* .count <- cart",
        ),
        ("COOKIES_HOLES", "sid, flash"),
        ("COOKIES_PERSONAL", "staff"),
        // A busy machine must not leave a hole unfilled.
        ("HOLES_WAIT_MS", "20000"),
    ];
    a_visitor_without_cookies_gets_the_stored_page_and_causes_no_request,
    a_visitor_with_a_session_of_the_origin_gets_the_stored_page_with_own_parts,
    an_assembled_page_has_no_validator_and_is_always_whole,
    the_session_at_the_edge_fills_holes_without_the_origin,
    everything_before_a_hole_is_sent_at_once,
    a_page_that_cannot_fill_the_holes_leaves_the_shared_content,
    content_that_comes_with_a_cookie_shows_until_the_browser_requests_it,
    concurrent_pages_of_a_visitor_share_one_request,
    a_page_does_not_wait_for_the_request_of_a_page_that_the_visitor_left,
    content_is_kept_for_its_visitor_only,
    content_that_the_origin_forbids_to_store_is_not_kept,
    a_change_by_the_visitor_shows_on_the_next_page,
    a_page_after_a_change_never_joins_a_request_from_before_it,
    other_cookies_and_pages_without_holes_stay_personal,
    concurrent_visitors_get_their_own_parts,
    a_slow_page_with_holes_is_sent_when_they_are_known,
    a_page_that_lost_its_holes_is_its_visitors_own,
}

/// A storefront that shows the visitor on each page. Its only caching header is `Vary: Cookie`.
fn storefront(asked: &Asked) -> Reply {
    show(asked).header("vary", "Cookie")
}

fn show(asked: &Asked) -> Reply {
    let name = name(asked);
    let mini = format!("<div id=mini>basket of <b>{name}</b></div>");
    match asked.path.as_str() {
        "/basket" => Reply::html(format!("<p>{mini}<input name=token value={name}></p>")),
        path => Reply::html(format!(
            "<h1>{path}</h1>{mini}<p class=user>nobody</p><i class=count>0</i><form><input name=token value={name}></form><form><input name=token value={name}></form>rest"
        )),
    }
}

/// The body of a visit of `name`. Panics if a part belongs to another visitor.
fn page_of(name: &str) -> String {
    let token = format!("<form><input name=token value={name}></form>");
    format!(
        "<h1>/products/mug</h1><div id=mini>basket of <b>{name}</b></div><p class=user>nobody</p><i class=count>0</i>{token}{token}rest"
    )
}

/// Stores the mug's page.
async fn open(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(storefront);
    assert_eq!(cache_status(&shop.visit("/products/mug").await), "edgefront; fwd=uri-miss; stored");
    shop.settled().await;
}

/// The paths of all requests to the origin after the first one.
fn asked_later(shop: &Shop) -> Vec<String> {
    shop.origin.asked().into_iter().skip(1).map(|asked| asked.path).collect()
}

async fn a_visitor_without_cookies_gets_the_stored_page_and_causes_no_request(shop: &Shop) {
    open(shop).await;
    let answer = visit(shop, "_ga=1").await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    assert_eq!(header(&answer, "cache-control"), "private, no-cache", "other visitors see another page");
    let etag = header(&answer, "etag");
    assert_eq!(answer.text().await.unwrap(), page_of("guest"));
    let again = shop.get("/products/mug").header("if-none-match", &etag).send().await.unwrap();
    assert_eq!((again.status().as_u16(), header(&again, "cache-control").as_str()), (304, "private, no-cache"));
    assert_eq!(asked_later(shop), [""; 0]);
}

async fn a_visitor_with_a_session_of_the_origin_gets_the_stored_page_with_own_parts(shop: &Shop) {
    open(shop).await;
    for name in ["bob", "eve", "ada"] {
        let answer = visit(shop, &format!("_ga=1; sid={name}")).await;
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), page_of(name));
    }
    assert_eq!(asked_later(shop), ["/basket"; 3], "one request for all holes of a page");
    let last = shop.origin.last();
    assert_eq!((last.method.as_str(), last.header("cookie")), ("GET", "_ga=1; sid=ada"));
    assert_eq!(visit(shop, "").await.text().await.unwrap(), page_of("guest"), "nothing is stored");
}

async fn an_assembled_page_has_no_validator_and_is_always_whole(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| {
        let reply = storefront(asked).header("expires", "Thu, 01 Jan 2099 00:00:00 GMT");
        let digests = ["content-digest", "content-md5", "digest", "repr-digest"];
        let reply = digests.into_iter().fold(reply, |reply, name| reply.header(name, "x"));
        reply.header("cdn-cache-control", "public, max-age=3600")
    });
    shop.visit("/products/mug").await;
    shop.settled().await;
    let etag = header(&visit(shop, "").await, "etag");
    for (name, value) in [("if-none-match", etag.as_str()), ("if-none-match", "*"), ("range", "bytes=0-3")] {
        let answer = shop.get("/products/mug").header("cookie", "sid=ada").header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{name}: {value}");
        for name in [
            "etag",
            "last-modified",
            "accept-ranges",
            "content-range",
            "expires",
            "cdn-cache-control",
            "content-digest",
            "content-md5",
            "digest",
            "repr-digest",
        ] {
            assert_eq!(header(&answer, name), "", "{name}");
        }
        assert_eq!(header(&answer, "cache-control"), "private, no-cache");
        assert!(header(&answer, "age").parse::<u64>().is_ok(), "RFC 9111 §4");
        assert_eq!(answer.text().await.unwrap(), page_of("ada"));
    }
    let before = shop.origin.count();
    let head = shop.request(Method::HEAD, "/products/mug").header("cookie", "sid=ada").send().await.unwrap();
    assert!(is_hit(&head) && header(&head, "etag").is_empty());
    assert_eq!(shop.origin.count(), before, "no content is asked for");
}

async fn the_session_at_the_edge_fills_holes_without_the_origin(shop: &Shop) {
    open(shop).await;
    let mut ada = log_in(shop, "ada").await;
    let session = ada.cookie.clone().unwrap();
    ada.put("/cart/items/mug", &json!({"quantity": 3})).await;
    shop.origin.answer(Reply::status(500));
    let answer = visit(shop, &session).await;
    assert!(is_hit(&answer), "{}", cache_status(&answer));
    let body = answer.text().await.unwrap();
    assert!(body.contains("<p class=user>ada</p><i class=count>3</i>"), "{body}");
    assert!(body.contains("basket of <b>guest</b>"), "the origin fails: {body}");
}

async fn everything_before_a_hole_is_sent_at_once(shop: &Shop) {
    open(shop).await;
    shop.origin.hold();
    let mut answer = visit(shop, "sid=ada").await;
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
    shop.origin.release();
    let rest = answer.text().await.unwrap();
    assert_eq!(format!("<h1>/products/mug</h1>{rest}"), page_of("ada"));
}

async fn a_page_that_cannot_fill_the_holes_leaves_the_shared_content(shop: &Shop) {
    open(shop).await;
    let own = "<div id=mini>own</div>";
    for reply in [
        Reply::html(own).with_status(500),
        Reply::html(own).with_status(403),
        Reply::status(302).header("location", "/login"),
        Reply::truncated(own),
        Reply::nothing(),
        Reply::html("<p>nothing of that</p>"),
    ] {
        shop.origin.answer(reply.clone());
        let answer = visit(shop, "sid=ada").await;
        assert!(is_hit(&answer), "{}", cache_status(&answer));
        assert_eq!(header(&answer, "set-cookie"), "");
        assert_eq!(answer.text().await.unwrap(), page_of("guest"), "{reply:?}");
    }
    // The visitor has this cookie already, so it is dropped.
    shop.origin.answer_with(|asked| storefront(asked).header("set-cookie", format!("sid={}; Path=/", name(asked))));
    assert_eq!(visit(shop, "sid=ada").await.text().await.unwrap(), page_of("ada"));
}

async fn content_that_comes_with_a_cookie_shows_until_the_browser_requests_it(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| storefront(asked).header("set-cookie", "seen=1; Path=/"));
    let answer = visit(shop, "sid=ada").await;
    assert_eq!(header(&answer, "set-cookie"), "", "the head is sent");
    let body = answer.text().await.unwrap();
    let tag = |hole: &str, index| {
        let start = body.find("/_edge/assets/holes.js?v=").unwrap();
        let script = &body[start..start + "/_edge/assets/holes.js?v=00000000".len()];
        format!(r#"<script type="module" src="{script}" data-hole="{hole}" data-index="{index}"></script>"#)
    };
    let token = |index| format!("<form><input name=token value=ada>{}</form>", tag("[name=token]", index));
    let expected = format!(
        "<h1>/products/mug</h1><div id=mini>basket of <b>ada</b></div>{}<p class=user>nobody</p><i class=count>0</i>{}{}rest",
        tag("#mini", 0),
        token(0),
        token(1)
    );
    assert_eq!(body, expected);
    // The response to the browser's request has the content and the cookie.
    let answer = shop.get("/_edge/v1/holes?page=/products/mug").header("cookie", "sid=ada").send().await.unwrap();
    assert_eq!(
        (header(&answer, "set-cookie").as_str(), header(&answer, "cache-control").as_str()),
        ("seen=1; Path=/", "private, no-store")
    );
    let content: serde_json::Value = answer.json().await.unwrap();
    let expected =
        json!({"#mini": ["<div id=mini>basket of <b>ada</b></div>"], "[name=token]": ["<input name=token value=ada>"]});
    assert_eq!(content, expected);
    // Shift_JIS.
    shop.origin.answer(Reply::html(b"<div id=mini>\x83\x5c</div><input name=token value=ada>".as_slice()));
    let content: serde_json::Value = shop.visit("/_edge/v1/holes?page=/products/mug").await.json().await.unwrap();
    assert_eq!(content, json!({"[name=token]": ["<input name=token value=ada>"]}));
    shop.origin.answer(Reply::status(500));
    assert_eq!(shop.visit("/_edge/v1/holes?page=/products/mug").await.status(), 502);
    for query in ["", "?page=", "?page=products", "?page=%20", "?page=/a&page=/b"] {
        assert_eq!(shop.visit(&format!("/_edge/v1/holes{query}")).await.status(), 422, "{query}");
    }
}

async fn concurrent_pages_of_a_visitor_share_one_request(shop: &Shop) {
    open(shop).await;
    shop.origin.hold();
    let mut pages = Vec::new();
    for name in ["ada", "ada", "ada", "bob"] {
        let mut page = visit(shop, &format!("sid={name}")).await;
        assert_eq!(page.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
        pages.push((name, page));
    }
    eventually("both visitors' requests arrive", async || asked_later(shop).len() == 2).await;
    shop.origin.release();
    for (name, page) in pages {
        assert_eq!(format!("<h1>/products/mug</h1>{}", page.text().await.unwrap()), page_of(name));
    }
    assert_eq!(asked_later(shop), ["/basket"; 2]);
}

async fn a_page_does_not_wait_for_the_request_of_a_page_that_the_visitor_left(shop: &Shop) {
    open(shop).await;
    shop.origin.hold();
    let mut pages = Vec::new();
    for _ in 0..2 {
        let mut page = visit(shop, "sid=ada").await;
        assert_eq!(page.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
        pages.push(page);
        eventually("the first page's request arrives", async || asked_later(shop).len() == 1).await;
    }
    let second = pages.pop().unwrap();
    drop(pages);
    eventually("the second page sends its own", async || asked_later(shop).len() == 2).await;
    shop.origin.release();
    assert_eq!(format!("<h1>/products/mug</h1>{}", second.text().await.unwrap()), page_of("ada"));
}

async fn content_is_kept_for_its_visitor_only(shop: &Shop) {
    open(shop).await;
    for name in ["ada", "ada", "bob", "ada", "bob"] {
        assert_eq!(visit(shop, &format!("sid={name}")).await.text().await.unwrap(), page_of(name));
    }
    assert_eq!(asked_later(shop), ["/basket"; 2]);
    for (name, value) in [("accept-language", "de"), ("user-agent", "another"), ("cf-connecting-ip", "192.0.2.7")] {
        let asked = asked_later(shop).len();
        let answer = shop.get("/products/mug").header("cookie", "sid=ada").header(name, value).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), page_of("ada"));
        assert_eq!(asked_later(shop).len(), asked + 1, "{name}");
    }
}

async fn content_that_the_origin_forbids_to_store_is_not_kept(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| storefront(asked).header("cache-control", "private, no-store"));
    for _ in 0..2 {
        assert_eq!(visit(shop, "sid=ada").await.text().await.unwrap(), page_of("ada"));
    }
    assert_eq!(asked_later(shop), ["/basket"; 2]);
}

async fn a_change_by_the_visitor_shows_on_the_next_page(shop: &Shop) {
    open(shop).await;
    let pieces = AtomicUsize::new(0);
    shop.origin.answer_with(move |asked| {
        let added = usize::from(asked.method == Method::POST);
        let pieces = pieces.fetch_add(added, Ordering::Relaxed) + added;
        Reply::html(format!("<div id=mini>{pieces} pieces of {}</div>", name(asked))).header("vary", "Cookie")
    });
    for pieces in 0..3 {
        if pieces > 0 {
            let change = shop.request(Method::POST, "/basket/add").header("cookie", "sid=ada").send().await.unwrap();
            assert!(header(&change, "set-cookie").starts_with("__Host-session-changed=1; "));
        }
        // With the cookie of the change, the isolate uses no kept content: another isolate may have forwarded the
        // change.
        for (cookies, requests) in [("sid=ada", 1), ("sid=ada", 0), ("sid=ada; __Host-session-changed=1", 1)] {
            let asked = shop.origin.count();
            let body = visit(shop, cookies).await.text().await.unwrap();
            assert!(body.contains(&format!("<div id=mini>{pieces} pieces of ada</div>")), "{body}");
            assert_eq!(shop.origin.count(), asked + requests, "{cookies}");
        }
    }
    let anonymous = shop.request(Method::POST, "/basket/add").send().await.unwrap();
    assert_eq!(header(&anonymous, "set-cookie"), "", "a visitor without cookies has no content");
}

async fn a_page_after_a_change_never_joins_a_request_from_before_it(shop: &Shop) {
    open(shop).await;
    shop.origin.hold();
    let mut before = visit(shop, "sid=ada").await;
    assert_eq!(before.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
    eventually("the request arrives", async || asked_later(shop).len() == 1).await;
    let change = shop.request(Method::POST, "/basket/add").header("cookie", "sid=ada").send();
    let after = async {
        eventually("the change arrives", async || asked_later(shop).len() == 2).await;
        let mut after = visit(shop, "sid=ada").await;
        assert_eq!(after.chunk().await.unwrap().unwrap(), "<h1>/products/mug</h1>");
        eventually("a second request arrives", async || asked_later(shop).len() == 3).await;
        shop.origin.release();
        after.text().await.unwrap()
    };
    let (change, after) = futures_util::future::join(change, after).await;
    assert!(change.unwrap().status().is_success());
    assert_eq!(format!("<h1>/products/mug</h1>{after}"), page_of("ada"));
    assert_eq!(asked_later(shop), ["/basket", "/basket/add", "/basket"]);
}

async fn other_cookies_and_pages_without_holes_stay_personal(shop: &Shop) {
    open(shop).await;
    for cookies in ["staff=1; sid=ada", "unknown=1; sid=ada", "staff=1", "unknown=1"] {
        let answer = visit(shop, cookies).await;
        assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=cookie", "{cookies}");
    }
    shop.origin.answer_with(|asked| storefront(asked).header("cache-control", "public, max-age=60"));
    shop.visit("/about").await;
    shop.settled().await;
    assert!(is_hit(&shop.visit("/about").await));
    let answer = shop.get("/about").header("cookie", "sid=ada").send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=cookie");
    assert!(answer.text().await.unwrap().contains("basket of <b>ada</b>"));
    // A page at a path with holes, without any of their elements.
    make_popular(shop, "cup").await;
    shop.origin.answer(Reply::html("<p>plain</p>"));
    shop.visit("/products/cup").await;
    shop.settled().await;
    let answer = shop.get("/products/cup").header("cookie", "sid=ada").send().await.unwrap();
    assert!(!is_hit(&answer), "{}", cache_status(&answer));
}

async fn concurrent_visitors_get_their_own_parts(shop: &Shop) {
    open(shop).await;
    let names: Vec<_> = (0..40).map(|number| format!("visitor{}", number % 20)).collect();
    let visits = names.iter().map(async |name| visit(shop, &format!("sid={name}")).await.text().await.unwrap());
    for (name, body) in names.iter().zip(futures_util::future::join_all(visits).await) {
        assert_eq!(body, page_of(name));
    }
}

async fn a_slow_page_with_holes_is_sent_when_they_are_known(shop: &Shop) {
    make_popular(shop, "mug").await;
    let reply = Reply::then_held("<div id=mini>guest</div>", "rest").header("content-type", "text/html");
    shop.origin.answer(reply.header("cache-control", "public, max-age=60"));
    shop.origin.hold();
    let release = async {
        eventually("the origin is asked", async || shop.origin.count() == 1).await;
        // Longer than a visitor waits for a page without holes.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        shop.origin.release();
    };
    let (answer, ()) = join(visit(shop, ""), release).await;
    assert_eq!(header(&answer, "cache-control"), "private, no-cache", "no browser keeps the guest's page");
}

async fn a_page_that_lost_its_holes_is_its_visitors_own(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| Reply::html(format!("no holes for {}", name(asked))));
    let reload = shop.get("/products/mug").header("cookie", "sid=ada").header("cache-control", "no-cache");
    assert_eq!(reload.send().await.unwrap().text().await.unwrap(), "no holes for ada");
    shop.settled().await;
    assert_eq!(visit(shop, "").await.text().await.unwrap(), "no holes for guest");
}
