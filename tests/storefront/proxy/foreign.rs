//! Requests that another site sent, other than links. The browser withholds the session cookie (`SameSite=Lax`), so the visitor may have a
//! session.

use http::Method;

use crate::{
    page_cache::header,
    support::{Reply, Shop, scenarios, set_cookie},
};

scenarios! {
    &[];
    only_a_request_of_another_site_leaves_the_session_unknown,
    a_form_of_another_site_replaces_no_session,
    a_login_by_a_form_of_another_site_starts_a_session,
    an_order_by_a_form_of_another_site_is_logged,
    a_fragment_of_a_foreign_response_leaves_the_session_unknown,
}

const FOREIGN: (&str, &str) = ("sec-fetch-site", "cross-site");
const CHANGE: &str = r#"{"op":"add","id":"mug","quantity":2}"#;

async fn only_a_request_of_another_site_leaves_the_session_unknown(shop: &Shop) {
    let guest = {
        shop.origin.answer(Reply::html("added").header("edge-cart", CHANGE));
        set_cookie(&shop.request(Method::POST, "/cart").send().await.unwrap())
    };
    shop.origin.answer(Reply::html("x"));
    let own = shop.url.as_str();
    for (method, headers, expected) in [
        (Method::POST, &[FOREIGN][..], ("unknown", "")),
        (Method::DELETE, &[FOREIGN], ("unknown", "")),
        (Method::POST, &[("origin", "https://evil.example")], ("unknown", "")),
        (Method::POST, &[FOREIGN, ("cookie", "sid=ada")], ("unknown", "")),
        (Method::POST, &[FOREIGN, ("cookie", &guest)], ("guest", r#"{"mug":2}"#)),
        // A forged cookie shows that the browser sends cookies.
        (Method::POST, &[FOREIGN, ("cookie", "__Host-session=forged.mac")], ("none", "{}")),
        // A link of a search engine.
        (Method::GET, &[FOREIGN], ("none", "{}")),
        (Method::GET, &[FOREIGN, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], ("none", "{}")),
        // An image, and a frame.
        (Method::GET, &[FOREIGN, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")], ("unknown", "")),
        (Method::GET, &[FOREIGN, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")], ("unknown", "")),
        (Method::GET, &[("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "empty")], ("none", "{}")),
        (Method::POST, &[("sec-fetch-site", "same-origin")], ("none", "{}")),
        // Another host of the same site gets the cookie.
        (Method::POST, &[("sec-fetch-site", "same-site"), ("origin", "https://pay.example")], ("none", "{}")),
        (Method::POST, &[("origin", own)], ("none", "{}")),
        // With `Referrer-Policy: no-referrer`, browsers send it with the shop's own forms.
        (Method::POST, &[("origin", "null")], ("none", "{}")),
        (Method::POST, &[("origin", "file://")], ("none", "{}")),
        // An app, or an old browser.
        (Method::POST, &[], ("none", "{}")),
    ] {
        let request = headers
            .iter()
            .fold(shop.request(method.clone(), "/cart"), |request, (name, value)| request.header(*name, *value));
        request.send().await.unwrap();
        let asked = shop.origin.last();
        assert_eq!((asked.header("edge-session"), asked.header("edge-cart")), expected, "{method} {headers:?}");
    }
}

async fn a_form_of_another_site_replaces_no_session(shop: &Shop) {
    shop.origin.answer(Reply::status(303).header("location", "/cart").header("edge-cart", CHANGE));
    let answer = shop.request(Method::POST, "/cart").header(FOREIGN.0, FOREIGN.1).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "set-cookie").as_str()), (303, ""));
    shop.logged("Edge-Cart was not executed").await;
    let own = shop.request(Method::POST, "/cart").header("sec-fetch-site", "same-origin").send().await.unwrap();
    assert!(set_cookie(&own).starts_with("__Host-session="));
}

/// A provider of logins may answer by a form (OAuth 2.0 Form Post Response Mode).
async fn a_login_by_a_form_of_another_site_starts_a_session(shop: &Shop) {
    shop.origin.answer(Reply::status(303).header("edge-login", "ada").header("edge-cart", CHANGE));
    let answer = shop.request(Method::POST, "/login").header(FOREIGN.0, FOREIGN.1).send().await.unwrap();
    let cookie = set_cookie(&answer);
    shop.origin.answer(Reply::html("x"));
    shop.get("/cart").header("cookie", cookie).send().await.unwrap();
    let asked = shop.origin.last();
    assert_eq!((asked.header("edge-user"), asked.header("edge-cart")), ("ada", r#"{"mug":2}"#));
}

async fn an_order_by_a_form_of_another_site_is_logged(shop: &Shop) {
    let order = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}"#;
    shop.origin.answer(Reply::html("thank you").header("edge-order", order).header("edge-cart", r#"{"op":"clear"}"#));
    let answer = shop.request(Method::POST, "/return").header(FOREIGN.0, FOREIGN.1).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "set-cookie")), (200, String::new()));
    shop.logged("report such an order by POST /orders").await;
}

async fn a_fragment_of_a_foreign_response_leaves_the_session_unknown(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/fragment" => Reply::html(asked.header("edge-session").to_owned()).header("edge-cart", CHANGE),
        _ => Reply::html("<esi:include src='/fragment'/>").header("surrogate-control", r#"content="ESI/1.0""#),
    });
    let answer = shop.request(Method::POST, "/return").header(FOREIGN.0, FOREIGN.1).send().await.unwrap();
    assert_eq!(header(&answer, "set-cookie"), "");
    assert_eq!(answer.text().await.unwrap(), "unknown");
}
