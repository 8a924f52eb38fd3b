//! `PATHS_SHARED`: an origin that says nothing about sharing, or that forbids it, as PHP does for a page with a
//! session.

use http::Method;
use serde_json::json;

use super::{
    cache_status,
    rfc9111::{ask, status},
};
use crate::{
    routes::api::service,
    support::{Asked, Reply, Shop, scenarios},
};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("PATHS_SHARED", "/, /shoes/*, /products/*, /index.php"),
        ("PATHS_PERSONAL", "/shoes/wishlist"),
        ("COOKIES_PERSONAL", "account"),
        ("COOKIES_DROPPED", "PHPSESSID@/shoes/*, PHPSESSID@/index.php"),
        ("ITEM_ROUTES", "/index.php?id={item}"),
        ("QUERY_KEPT", "page, route=product|list, path"),
    ];
    a_page_that_the_origin_forbids_to_store_is_shared,
    pages_without_an_item_are_shared,
    a_visitor_with_an_unknown_cookie_gets_an_own_page,
    a_page_that_the_origin_forbids_to_store_is_not_declared_shared,
    a_visitors_own_response_leads_to_a_shared_page,
    visits_that_no_shared_page_can_answer_cost_one_request_each,
    other_paths_and_parameters_are_not_shared,
    a_parameter_that_names_the_kind_of_page_is_shared_with_listed_values_only,
    an_error_and_a_cookie_are_not_stored,
    an_event_stream_passes_at_once_and_is_not_rendered_again,
    an_explanation_names_the_rule,
}

/// The headers of PHP after `session_start()`.
fn php(asked: &Asked) -> Reply {
    let page = Reply::html(format!("hello {}", asked.header("cookie")));
    let page = page.header("cache-control", "no-store, no-cache, must-revalidate").header("pragma", "no-cache");
    page.header("expires", "Thu, 19 Nov 1981 08:52:00 GMT").header("set-cookie", "PHPSESSID=new; path=/")
}

async fn a_page_that_the_origin_forbids_to_store_is_shared(shop: &Shop) {
    shop.origin.answer_with(php);
    assert_eq!(status(shop, "/shoes/red", &[]).await, "fwd=uri-miss; stored");
    for cookies in ["_ga=1", "", "_fbp=2"] {
        let (status, body) = ask(shop, "/shoes/red", &[("cookie", cookies)]).await;
        assert!(status.starts_with("hit; ttl=") && body == "hello ", "{cookies}: {status}, {body}");
    }
    let answer = shop.request(Method::GET, "/shoes/red").send().await.unwrap();
    assert!(answer.headers()["cache-control"].to_str().unwrap().starts_with("no-store"), "browsers obey the origin");
    assert!(!answer.headers().contains_key("set-cookie"));
    assert_eq!(shop.origin.count(), 1);
}

async fn pages_without_an_item_are_shared(shop: &Shop) {
    shop.origin.answer(Reply::html("home"));
    for path in ["/", "/shoes/?page=2", "/products/never-viewed"] {
        assert_eq!(status(shop, path, &[]).await, "fwd=uri-miss; stored", "{path}");
        assert!(status(shop, path, &[]).await.starts_with("hit"), "{path}");
    }
}

async fn a_visitor_with_an_unknown_cookie_gets_an_own_page(shop: &Shop) {
    shop.origin.answer_with(php);
    status(shop, "/shoes/red", &[]).await;
    for cookie in ["PHPSESSID=ada", "account=ada"] {
        let (status, body) = ask(shop, "/shoes/red", &[("cookie", cookie)]).await;
        assert!(!status.starts_with("hit") && body == format!("hello {cookie}"), "{status}: {body}");
    }
    assert_eq!(ask(shop, "/shoes/red", &[]).await.1, "hello ");
}

async fn a_page_that_the_origin_forbids_to_store_is_not_declared_shared(shop: &Shop) {
    let controls = [
        ("/shoes/a", "private, s-maxage=60"),
        ("/shoes/b", "public, no-store"),
        ("/shoes/c", "public, no-cache"),
        ("/shoes/d", "public, max-age=0, must-revalidate"),
        ("/shoes/e", "s-maxage=0"),
        ("/shoes/f", "public"),
    ];
    for (path, control) in controls {
        shop.origin.answer_with(move |asked| {
            let page = Reply::html(format!("hello {}", asked.header("cookie"))).header("cache-control", control);
            // Without `Date`, the age begins with the arrival of the response.
            if control == "public" { page.header("expires", "Thu, 26 Nov 2020 12:00:00 GMT") } else { page }
        });
        assert_eq!(status(shop, path, &[]).await, "fwd=uri-miss; stored", "{control}");
        let (status, body) = ask(shop, path, &[("cookie", "sid=ada")]).await;
        assert!(!status.starts_with("hit") && body == "hello sid=ada", "{control}: {status}, {body}");
    }
}

async fn visits_that_no_shared_page_can_answer_cost_one_request_each(shop: &Shop) {
    shop.origin.answer_with(|asked| php(asked).header("vary", "Cookie"));
    assert_eq!(status(shop, "/shoes/red", &[]).await, "fwd=uri-miss; stored");
    for visit in 1..4 {
        status(shop, "/shoes/red", &[("cookie", "PHPSESSID=ada")]).await;
        shop.settled().await;
        assert_eq!(shop.origin.count(), 1 + visit);
    }
    assert!(status(shop, "/shoes/red", &[]).await.starts_with("hit"));
}

async fn a_visitors_own_response_leads_to_a_shared_page(shop: &Shop) {
    shop.origin.answer_with(php);
    assert_eq!(ask(shop, "/shoes/blue", &[("cookie", "PHPSESSID=ada")]).await.1, "hello PHPSESSID=ada");
    shop.settled().await;
    let (status, body) = ask(shop, "/shoes/blue", &[]).await;
    assert!(status.starts_with("hit") && body == "hello ", "{status}: {body}");
}

async fn other_paths_and_parameters_are_not_shared(shop: &Shop) {
    shop.origin.answer_with(php);
    for path in ["/cart", "/shoes/red?sort=price", "/shoes/wishlist"] {
        for _ in 0..2 {
            assert!(!status(shop, path, &[]).await.contains("hit"), "{path}");
        }
    }
}

async fn a_parameter_that_names_the_kind_of_page_is_shared_with_listed_values_only(shop: &Shop) {
    shop.origin.answer_with(php);
    for path in ["/index.php", "/index.php?route=list&path=1_2", "/index.php?route=product&id=40"] {
        assert_eq!(status(shop, path, &[]).await, "fwd=uri-miss; stored", "{path}");
        assert!(status(shop, path, &[]).await.starts_with("hit"), "{path}");
    }
    for path in
        ["route=cart", "route=cart&id=40", "route=list&route=cart", "route=list&route[]=cart", "route%3Dlist=cart"]
    {
        for _ in 0..2 {
            let answer = shop.request(Method::GET, &format!("/index.php?{path}")).send().await.unwrap();
            assert!(!cache_status(&answer).contains("hit") && answer.headers().contains_key("set-cookie"), "{path}");
        }
    }
    service(shop, Method::POST, "/purge", Some(&json!({ "items": ["40"] }))).await;
    assert_eq!(status(shop, "/index.php?route=product&id=40", &[]).await, "fwd=uri-miss; stored");
    assert!(status(shop, "/index.php?route=list&path=1_2", &[]).await.starts_with("hit"));
}

async fn an_error_and_a_cookie_are_not_stored(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/shoes/gone" => Reply::status(404),
        "/shoes/other" => php(asked).header("set-cookie", "other=1"),
        _ => Reply::status(302).header("location", "/"),
    });
    for (path, detail) in [("/shoes/gone", "status"), ("/shoes/other", "set-cookie"), ("/shoes/moved", "status")] {
        assert!(status(shop, path, &[]).await.ends_with(&format!("detail={detail}")), "{path}");
    }
}

/// `EventSource` names its type in `Accept`; `fetch` does not.
async fn an_event_stream_passes_at_once_and_is_not_rendered_again(shop: &Shop) {
    let reply = Reply::then_held("data: 1\n\n", "data: 2\n\n").header("content-type", "text/event-stream");
    shop.origin.answer(reply.header("cache-control", "no-cache"));
    shop.origin.hold();
    for (path, accept) in [("/shoes/events", "text/event-stream"), ("/shoes/stream", "*/*")] {
        let mut answer = shop.get(path).header("accept", accept).send().await.unwrap();
        assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=personal", "{accept}");
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: 1\n\n");
    }
    shop.origin.release();
    shop.settled().await;
    assert_eq!(shop.origin.count(), 2);
}

async fn an_explanation_names_the_rule(shop: &Shop) {
    shop.origin.answer_with(php);
    let explained = service(shop, Method::GET, "/cache?url=/shoes/red", None).await.json;
    assert_eq!((&explained["cacheable"], &explained["why"]), (&json!(true), &json!("absent")), "{explained}");
    assert_eq!(explained["rules"]["paths_shared"], json!(["/", "/shoes/*", "/products/*", "/index.php"]));
    assert_eq!(explained["rules"]["query_kept"], json!(["page", "path", "route=product|list"]));
}
