//! Tokens of a session in forms: each visitor gets the stored page, whose script fetches the token, and starts the session, when
//! the visitor uses a form.

use http::{HeaderMap, Method};

use super::{asked_later, is_hit, name, visit};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("HOLES", "/products/* [name=token] <- token"),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "sid@/products/*"),
        ("PATHS_SHARED", "/products/*"),
    ];
    a_visitor_without_cookies_gets_the_stored_page_with_a_script,
    a_visitor_with_a_session_gets_the_stored_page_without_a_request,
    a_copy_of_the_origins_page_is_not_the_page_with_the_script,
    a_confirmed_page_keeps_one_script,
    the_script_gets_the_token_and_the_session,
}

/// A shop that starts a session on each page, and whose forms need a token of the session.
fn page(asked: &Asked) -> Reply {
    let token = if asked.header("cookie").is_empty() { "new" } else { name(asked) };
    let page = Reply::html(format!("<form><input name=token value={token}><button>Buy</button></form>"));
    let page = page.header("etag", "\"1\"").header("cache-control", "no-cache, private");
    if token == "new" { page.header("set-cookie", "sid=new; Path=/; HttpOnly") } else { page }
}

async fn body(shop: &Shop, cookie: &str) -> String {
    let answer = visit(shop, cookie).await;
    assert!(is_hit(&answer), "{:?}", answer.headers());
    assert!(!answer.headers().contains_key("set-cookie"));
    assert_eq!(answer.headers()["cache-control"], "private, no-cache");
    answer.text().await.unwrap()
}

/// The stored page, before the body of its form ends.
fn is_shared(body: &str) -> bool {
    body.starts_with("<form><input name=token value=new><script type=\"module\" src=\"/_edge/assets/holes.js")
        && body
            .ends_with("data-hole=\"[name=token]\" data-index=\"0\" data-on-use></script><button>Buy</button></form>")
        && body.matches("<script").count() == 1
}

async fn open(shop: &Shop) {
    shop.origin.answer_with(page);
    shop.visit("/products/mug").await;
    shop.settled().await;
}

async fn a_visitor_without_cookies_gets_the_stored_page_with_a_script(shop: &Shop) {
    open(shop).await;
    for cookie in ["", "_ga=1"] {
        let body = body(shop, cookie).await;
        assert!(is_shared(&body), "{body}");
    }
    assert_eq!(asked_later(shop), [""; 0]);
}

async fn a_visitor_with_a_session_gets_the_stored_page_without_a_request(shop: &Shop) {
    open(shop).await;
    for name in ["ada", "bob"] {
        let body = body(shop, &format!("sid={name}")).await;
        assert!(is_shared(&body), "{body}");
    }
    assert_eq!(asked_later(shop), [""; 0]);
}

/// A browser has the page from a visit with a session that has ended since.
async fn a_copy_of_the_origins_page_is_not_the_page_with_the_script(shop: &Shop) {
    let modified = "Sat, 21 Nov 2026 15:00:00 GMT";
    shop.origin.answer_with(move |asked| page(asked).header("last-modified", modified));
    shop.visit("/products/mug").await;
    shop.settled().await;
    for (name, value) in [("if-none-match", "\"1\""), ("if-modified-since", modified)] {
        let answer = shop.get("/products/mug").header(name, value).send().await.unwrap();
        assert_eq!((is_hit(&answer), answer.status().as_u16()), (true, 200), "{name}");
        assert!(is_shared(&answer.text().await.unwrap()), "{name}");
    }
    let own = visit(shop, "").await.headers()["etag"].clone();
    let again = shop.get("/products/mug").header("if-none-match", own).send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert_eq!(asked_later(shop), [""; 0]);
}

async fn a_confirmed_page_keeps_one_script(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| match asked.header("if-none-match") {
        "\"1\"" => Reply::status(304).header("etag", "\"1\"").header("cache-control", "no-cache, private"),
        _ => page(asked),
    });
    let reload = shop.request(Method::GET, "/products/mug").header("cache-control", "no-cache").send().await.unwrap();
    assert!(is_shared(&reload.text().await.unwrap()));
    assert!(is_shared(&body(shop, "").await));
    assert!(is_shared(&body(shop, "sid=ada").await));
}

async fn the_script_gets_the_token_and_the_session(shop: &Shop) {
    open(shop).await;
    let answer = shop.get("/_edge/v1/holes?page=/products/mug").send().await.unwrap();
    let cookies = |headers: &HeaderMap| headers["set-cookie"].to_str().unwrap().to_owned();
    assert_eq!(cookies(answer.headers()), "sid=new; Path=/; HttpOnly");
    assert_eq!(answer.text().await.unwrap(), "{\"[name=token]\":[\"<input name=token value=new>\"]}");
}
