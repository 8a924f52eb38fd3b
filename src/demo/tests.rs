//! The shop as the edge sees it, without its catalogue: what needs no database, and what happens when there is none.

use futures_util::{FutureExt, future::LocalBoxFuture};
use http::HeaderMap;
use serde_json::Value;

use super::*;
use crate::ports::database::{DatabaseError, Row, Statement};

/// A D1 that is out of reach.
struct Unreachable;

impl Database for Unreachable {
    fn query<'a>(&'a self, _: &'a str, _: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async { Err(DatabaseError::Failed("D1_ERROR: secret detail".to_owned())) })
    }

    fn transaction<'a>(&'a self, _: &'a [Statement<'a>]) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async { Err(DatabaseError::Failed("D1_ERROR: secret detail".to_owned())) })
    }
}

fn ask(method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> (StatusCode, HeaderMap, String) {
    let mut request = http::Request::builder().method(method).uri(format!("https://shop.example{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).unwrap();
    let response =
        respond(&Unreachable, &RateLimit::default(), request, Timestamp::from_millis(0)).now_or_never().unwrap();
    let (head, body) = response.into_parts();
    let body = match body {
        Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        _ => String::new(),
    };
    (head.status, head.headers, body)
}

#[test]
fn without_its_catalogue_the_shop_says_so_and_nothing_else() {
    for path in ["/", "/products/mug", "/?item=mug", "/categories/kitchen", "/products.json?ids=mug"] {
        let (status, headers, body) = ask("GET", path, &[], Body::Empty);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(headers["retry-after"], "5");
        assert_eq!(headers["cache-control"], "no-store");
        assert!(!body.contains("D1"), "{body}");
    }
}

#[test]
fn what_is_typed_wrong_is_kept_beside_its_message() {
    let (status, headers, body) = ask("POST", "/login", &[], "mail=ada+lovelace&password=secret");
    assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::UNPROCESSABLE_ENTITY, &b"no-store"[..]));
    assert!(body.contains("value=\"ada lovelace\"") && body.contains("aria-invalid"), "{body}");
    assert!(!body.contains("secret"), "a password is not sent back");

    let (status, _, body) =
        ask("POST", "/signup", &[], "name=%3CAda%3E&mail=ada%40example.org&password=short&next=/checkout");
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(body.contains("value=\"&#60;Ada&#62;\"") && body.contains("value=\"ada@example.org\""), "{body}");
    assert!(body.contains("id=\"password-problem\"") && !body.contains("id=\"mail-problem\""), "{body}");
    assert!(body.contains("aria-describedby=\"password-problem password-hint\""), "{body}");
    assert!(body.contains("name=\"next\" value=\"/checkout\""), "{body}");

    for path in ["/login", "/signup", "/cart", "/checkout"] {
        let (status, _, _) = ask("POST", path, &[], "a".repeat(100_000));
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
}

#[test]
fn a_sign_in_leads_to_a_path_of_this_shop_only() {
    for next in ["//evil.example", "https://evil.example", "/%5Cevil.example"] {
        let (_, _, body) = ask("GET", &format!("/login?next={next}"), &[], Body::Empty);
        assert!(body.contains("name=\"next\" value=\"/\"") && !body.contains("evil"), "{body}");
    }
    let (_, _, body) = ask("GET", "/login?next=/checkout%3Fa%26b", &[], Body::Empty);
    assert!(
        body.contains("value=\"/checkout?a&#38;b\"") && body.contains("/signup?next=%2Fcheckout%3Fa%26b"),
        "{body}"
    );
}

#[test]
fn whoever_is_not_signed_in_is_asked_to_and_comes_back() {
    let (status, headers, _) = ask("GET", "/account", &[], Body::Empty);
    assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/login?next=/account"[..]));
    for path in ["/login", "/signup"] {
        let (status, headers, _) = ask("GET", path, &[("edge-user", "ada")], Body::Empty);
        assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/account"[..]));
    }
}

#[test]
fn a_cart_that_is_not_told_is_not_an_empty_one() {
    for path in ["/cart", "/checkout"] {
        let (status, headers, body) = ask("GET", path, &[], Body::Empty);
        assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::SERVICE_UNAVAILABLE, &b"no-store"[..]));
        assert!(body.contains("cannot be reached"), "{body}");
        let (status, _, body) = ask("GET", path, &[("edge-cart", "{}")], Body::Empty);
        assert!(status == StatusCode::OK && body.contains("There is nothing in"), "{path}: {body}");
    }
}

#[test]
fn a_checkout_that_does_not_reach_its_books_loses_nothing_that_was_typed() {
    let (status, _, _) = ask("GET", "/orders/0123456789abcdef0123456789abcdef", &[], Body::Empty);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, _, body) = ask("POST", "/checkout", &[], "name=Ada&mail=ada&address=1+Analytical+Street%0d%0aLondon");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "the cart is not told");
    for typed in ["value=\"Ada\"", "value=\"ada\"", "\n1 Analytical Street\nLondon</textarea>", "id=\"mail-problem\""] {
        assert!(body.contains(typed), "{typed}: {body}");
    }
}

#[test]
fn each_form_of_a_checkout_is_another_order() {
    let order = || {
        let (_, _, body) = ask("GET", "/checkout", &[], Body::Empty);
        let (_, rest) = body.split_once("name=\"order\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(order().len(), 32);
    assert_ne!(order(), order());
}

#[test]
fn an_empty_cart_offers_nothing_to_buy() {
    let (_, _, body) = ask("GET", "/checkout", &[("edge-cart", "{}")], Body::Empty);
    assert!(body.contains("There is nothing in your cart.") && !body.contains("name=\"order\""), "{body}");
}

#[test]
fn a_name_that_does_not_show_is_none() {
    for name in ["%E2%80%8B", "Ada%E2%80%AEsdrawkcab", "%ff%fe"] {
        let (_, _, body) = ask("POST", "/checkout", &[], format!("name={name}&mail=ada@example.org&address=Here"));
        assert!(body.contains("There is a character in it that no one can see."), "{name}: {body}");
    }
}

#[test]
fn a_cart_is_changed_by_its_header() {
    let (status, headers, _) = ask("POST", "/cart", &[], "op=remove&id=mug");
    assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/cart"[..]));
    assert_eq!(headers["edge-cart"], r#"{"op":"set","id":"mug","quantity":0}"#);
    for form in ["op=remove&id=a:b", "op=steal&id=mug&quantity=1", "id=mug", ""] {
        let (status, headers, _) = ask("POST", "/cart", &[], form);
        assert!(status == StatusCode::NOT_FOUND && !headers.contains_key("edge-cart"), "{form}");
    }
}

#[test]
fn signing_out_is_a_post_that_says_so() {
    let (status, headers, _) = ask("POST", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["edge-logout"].as_bytes()), (StatusCode::SEE_OTHER, &b"1"[..]));
    let (status, headers, _) = ask("GET", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["allow"].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"POST"[..]));
    assert!(!headers.contains_key("edge-logout"));
    assert_eq!(ask("POST", "/logout", &[], "everywhere=1").1["edge-logout"], "all");
}

#[test]
fn no_form_of_another_site_does_anything() {
    let refused: [&[_]; 7] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "https://shop.example")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        // Whoever changes what is not encrypted on its way writes such a page.
        &[("origin", "http://shop.example")],
        &[("origin", "https://shop.example"), ("origin", "https://evil.example")],
        &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
    ];
    for headers in refused {
        for path in ["/login", "/logout", "/signup", "/cart", "/checkout"] {
            let (status, answer, _) = ask("POST", path, headers, "op=remove&id=mug");
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
            assert!(answer.keys().all(|name| !name.as_str().starts_with("edge-")));
        }
    }
    for headers in [("sec-fetch-site", "same-origin"), ("origin", "https://shop.example")] {
        assert_eq!(ask("POST", "/logout", &[headers], "").0, StatusCode::SEE_OTHER, "{headers:?}");
    }
}

#[test]
fn only_pages_that_are_never_stored_know_a_name() {
    let (status, headers, body) = ask("GET", "/cart", &[("edge-user", "<ada>"), ("edge-cart", "{}")], Body::Empty);
    assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::OK, &b"no-store"[..]));
    assert!(body.contains("Hello, &#60;ada&#62;"), "{body}");
    assert!(!ask("GET", "/cart", &[("edge-cart", "{}")], Body::Empty).2.contains("Hello"));
}

#[test]
fn no_form_carries_a_script_or_a_style_of_its_own() {
    for path in ["/cart", "/checkout", "/login", "/signup"] {
        let page = ask("GET", path, &[("edge-cart", "{}")], Body::Empty).2;
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"), "{page}");
        assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/_edge/assets/").count(), "{page}");
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
    }
}

#[test]
fn an_unknown_address_and_a_wrong_method_are_told_apart() {
    assert_eq!(ask("GET", "/nowhere", &[], Body::Empty).0, StatusCode::NOT_FOUND);
    assert_eq!(ask("POST", "/nowhere", &[], Body::Empty).0, StatusCode::NOT_FOUND);
    let (status, headers, _) = ask("DELETE", "/products/mug", &[], Body::Empty);
    assert_eq!((status, headers["allow"].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"GET, HEAD"[..]));
}

#[test]
fn every_answer_is_strict_and_a_head_has_no_body() {
    for (method, path) in [("GET", "/cart"), ("HEAD", "/cart"), ("GET", "/nowhere"), ("POST", "/logout")] {
        let (_, headers, body) = ask(method, path, &[], Body::Empty);
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'self'"), "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(body.is_empty(), method != "GET", "{method} {path}");
    }
    let length = ask("GET", "/cart", &[], Body::Empty).2.len();
    assert_eq!(ask("HEAD", "/cart", &[], Body::Empty).1["content-length"], length.to_string());
}
