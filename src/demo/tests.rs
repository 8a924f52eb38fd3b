//! The shop as the edge sees it, without its catalogue: what needs no database, and what happens when there is none.

use futures_util::{FutureExt, future::LocalBoxFuture};
use http::HeaderMap;
use serde_json::Value;

use super::*;
use crate::database::{DatabaseError, Row, Statement};

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
    let response = respond(&Unreachable, request, Timestamp::from_millis(0)).now_or_never().unwrap();
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
fn a_name_signs_in_and_a_wrong_one_is_kept_beside_its_message() {
    let (status, headers, _) = ask("POST", "/login", &[], "user=ada%40example.org");
    assert_eq!((status, headers["edge-login"].as_bytes()), (StatusCode::SEE_OTHER, &b"ada@example.org"[..]));
    assert_eq!((headers["location"].as_bytes(), headers["cache-control"].as_bytes()), (&b"/"[..], &b"no-store"[..]));

    for form in ["user=", "", "name=ada", "user=ada+lovelace", "user=%ff", "user=a%0d%0aEdge-Login:+root"] {
        let (status, headers, body) = ask("POST", "/login", &[], form);
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(!headers.contains_key("edge-login") && body.contains("aria-invalid"), "{form}");
    }
    let (_, _, body) = ask("POST", "/login", &[], "user=ada+lovelace");
    assert!(body.contains("value=\"ada lovelace\""), "{body}");

    let (status, headers, _) = ask("POST", "/login", &[], format!("user={}", "a".repeat(100_000)));
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(!headers.contains_key("edge-login"));
}

#[test]
fn signing_out_is_a_post_that_says_so() {
    let (status, headers, _) = ask("POST", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["edge-logout"].as_bytes()), (StatusCode::SEE_OTHER, &b"1"[..]));
    let (status, headers, _) = ask("GET", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["allow"].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"POST"[..]));
    assert!(!headers.contains_key("edge-logout"));
}

#[test]
fn no_form_of_another_site_signs_anybody_in_or_out() {
    let refused: [&[_]; 4] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "https://shop.example")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
    ];
    for headers in refused {
        for path in ["/login", "/logout"] {
            let (status, answer, _) = ask("POST", path, headers, "user=ada");
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
            assert!(!answer.contains_key("edge-login") && !answer.contains_key("edge-logout"));
        }
    }
    for headers in [("sec-fetch-site", "same-origin"), ("origin", "https://shop.example")] {
        assert_eq!(ask("POST", "/login", &[headers], "user=ada").0, StatusCode::SEE_OTHER, "{headers:?}");
    }
}

#[test]
fn only_pages_that_are_never_stored_know_a_name() {
    for path in ["/cart", "/login"] {
        let (status, headers, body) = ask("GET", path, &[("edge-user", "<ada>")], Body::Empty);
        assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::OK, &b"no-store"[..]), "{path}");
        assert!(body.contains("Hello, &#60;ada&#62;"), "{body}");
        assert!(!ask("GET", path, &[], Body::Empty).2.contains("Hello"));
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
