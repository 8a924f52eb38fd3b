//! Tests of the shop's HTTP interface with a database that always fails: pages that need no database, and error pages.

use std::cell::RefCell;

use futures_util::{FutureExt, future::LocalBoxFuture};
use http::HeaderMap;
use serde_json::Value;

use super::*;
use crate::ports::{
    database::{DatabaseError, Row, Statement},
    mail::Mail,
};

/// A database that fails every query.
struct FailingDatabase;

impl Database for FailingDatabase {
    fn query<'a>(&'a self, _: &'a str, _: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async { Err(DatabaseError::Failed("D1_ERROR: secret detail".to_owned())) })
    }

    fn transaction<'a>(&'a self, _: &'a [Statement<'a>]) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async { Err(DatabaseError::Failed("D1_ERROR: secret detail".to_owned())) })
    }
}

fn send(method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> (StatusCode, HeaderMap, String) {
    let mut request = http::Request::builder().method(method).uri(format!("https://shop.example{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).unwrap();
    let services = Services {
        database: &FailingDatabase,
        logins: &RateLimit::default(),
        mailer: None,
        max_quantity: 999,
        flash_hold: Duration::from_secs(150),
        site: None,
    };
    let response = respond(services, request, Timestamp::from_millis(0)).now_or_never().unwrap();
    let (head, body) = response.into_parts();
    let body = match body {
        Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        _ => String::new(),
    };
    (head.status, head.headers, body)
}

#[test]
fn without_a_database_the_catalogue_answers_503_without_details() {
    for path in ["/", "/products/mug", "/?item=mug", "/categories/kitchen", "/products.json?ids=mug"] {
        let (status, headers, body) = send("GET", path, &[], Body::Empty);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(headers["retry-after"], "5");
        assert_eq!(headers["cache-control"], "no-store");
        assert!(!body.contains("D1"), "{body}");
    }
}

#[test]
fn an_invalid_form_shows_its_values_and_problems() {
    let (status, headers, body) = send("POST", "/login", &[], "email=ada+lovelace&password=secret");
    assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::UNPROCESSABLE_ENTITY, &b"no-store"[..]));
    assert!(body.contains("value=\"ada lovelace\"") && body.contains("aria-invalid"), "{body}");
    assert!(!body.contains("secret"), "a password is not sent back");

    let (status, _, body) =
        send("POST", "/signup", &[], "name=%3CAda%3E&email=ada%40example.org&password=short&next=/checkout");
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(body.contains("value=\"&#60;Ada&#62;\"") && body.contains("value=\"ada@example.org\""), "{body}");
    assert!(body.contains("id=\"password-problem\"") && !body.contains("id=\"email-problem\""), "{body}");
    assert!(body.contains("aria-describedby=\"password-problem password-hint\""), "{body}");
    assert!(body.contains("name=\"next\" value=\"/checkout\""), "{body}");

    for path in ["/login", "/signup", "/cart", "/checkout"] {
        let (status, _, _) = send("POST", path, &[], "a".repeat(100_000));
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
}

#[test]
fn a_sign_in_redirects_only_within_the_shop() {
    for next in ["//evil.example", "https://evil.example", "/%5Cevil.example"] {
        let (_, _, body) = send("GET", &format!("/login?next={next}"), &[], Body::Empty);
        assert!(body.contains("name=\"next\" value=\"/\"") && !body.contains("evil"), "{body}");
    }
    let (_, _, body) = send("GET", "/login?next=/checkout%3Fa%26b", &[], Body::Empty);
    assert!(
        body.contains("value=\"/checkout?a&#38;b\"") && body.contains("/signup?next=%2Fcheckout%3Fa%26b"),
        "{body}"
    );
}

#[test]
fn a_guest_is_redirected_to_sign_in_and_a_user_to_the_account() {
    let (status, headers, _) = send("GET", "/account", &[], Body::Empty);
    assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/login?next=/account"[..]));
    for path in ["/login", "/signup"] {
        let (status, headers, _) = send("GET", path, &[("edge-user", "ada")], Body::Empty);
        assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/account"[..]));
    }
}

#[test]
fn an_unknown_cart_is_not_an_empty_cart() {
    for path in ["/cart", "/checkout"] {
        let (status, headers, body) = send("GET", path, &[], Body::Empty);
        assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::SERVICE_UNAVAILABLE, &b"no-store"[..]));
        assert_eq!(headers["retry-after"], "5");
        assert!(body.contains("could not load your cart"), "{body}");
        assert!(
            body.contains(&format!("href=\"{path}\">Try again</a>")) && !body.contains("class=\"fields\""),
            "{body}"
        );
        let (status, _, body) = send("GET", path, &[("edge-cart", "{}")], Body::Empty);
        assert!(status == StatusCode::OK && body.contains("Your cart is empty"), "{path}: {body}");
    }
}

#[test]
fn a_failed_checkout_keeps_the_entered_details() {
    let (status, _, _) = send("GET", "/orders/0123456789abcdef0123456789abcdef", &[], Body::Empty);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, _, body) =
        send("POST", "/checkout", &[], "name=Ada&email=ada&address=1+Analytical+Street&city=London");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "the cart is unknown");
    for typed in
        ["value=\"Ada\"", "value=\"ada\"", "value=\"1 Analytical Street\"", "value=\"London\"", "id=\"email-problem\""]
    {
        assert!(body.contains(typed), "{typed}: {body}");
    }
}

#[test]
fn each_checkout_form_has_its_own_order_id() {
    let order_id = || {
        let (_, _, body) = send("POST", "/checkout", &[], "name=Ada");
        let (_, rest) = body.split_once("name=\"order_id\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(order_id().len(), 32);
    assert_ne!(order_id(), order_id());
}

#[test]
fn an_empty_cart_has_no_checkout_form() {
    let (_, _, body) = send("GET", "/checkout", &[("edge-cart", "{}")], Body::Empty);
    assert!(body.contains("Your cart is empty.") && !body.contains("name=\"order_id\""), "{body}");
}

#[test]
fn a_name_with_invisible_characters_is_rejected() {
    for name in ["%E2%80%8B", "Ada%E2%80%AEsdrawkcab", "%ff%fe"] {
        let (_, _, body) = send("POST", "/checkout", &[], format!("name={name}&email=ada@example.org&address=Here"));
        assert!(body.contains("This contains an invisible character."), "{name}: {body}");
    }
}

#[test]
fn a_cart_form_answers_with_an_edge_cart_header() {
    let (status, headers, _) = send("POST", "/cart", &[], "op=remove&id=mug");
    assert_eq!((status, headers["location"].as_bytes()), (StatusCode::SEE_OTHER, &b"/cart"[..]));
    assert_eq!(headers["edge-cart"], r#"{"op":"set","id":"mug","quantity":0}"#);
    for form in ["op=remove&id=a:b", "op=steal&id=mug&quantity=1", "id=mug", ""] {
        let (status, headers, _) = send("POST", "/cart", &[], form);
        assert!(status == StatusCode::NOT_FOUND && !headers.contains_key("edge-cart"), "{form}");
    }
}

#[test]
fn signing_out_is_a_post_that_says_so() {
    let (status, headers, _) = send("POST", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["edge-logout"].as_bytes()), (StatusCode::SEE_OTHER, &b"1"[..]));
    let (status, headers, _) = send("GET", "/logout", &[], Body::Empty);
    assert_eq!((status, headers["allow"].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"POST"[..]));
    assert!(!headers.contains_key("edge-logout"));
    assert_eq!(send("POST", "/logout", &[], "everywhere=1").1["edge-logout"], "all");
}

/// Knows the account `ada@example.org` only.
struct OneAccount;

impl Database for OneAccount {
    fn query<'a>(&'a self, _: &'a str, binds: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        let is_known = binds.first().is_some_and(|user| user == "ada@example.org");
        Box::pin(async move { Ok(if is_known { vec![Row::default()] } else { Vec::new() }) })
    }

    fn transaction<'a>(&'a self, _: &'a [Statement<'a>]) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Keeps the mails, and fails.
#[derive(Default)]
struct FailingMailer(RefCell<Vec<String>>);

impl Mailer for FailingMailer {
    fn send<'a>(&'a self, mail: &'a Mail<'a>) -> LocalBoxFuture<'a, Result<(), Error>> {
        self.0.borrow_mut().push(mail.text.to_owned());
        Box::pin(async { Err(Error::Platform("the mailbox is full".to_owned())) })
    }
}

#[test]
fn a_failing_mailer_reveals_no_account_and_a_forged_host_is_in_no_mail() {
    let mailer = FailingMailer::default();
    let ask = |email: &str| {
        let services = Services {
            database: &OneAccount,
            logins: &RateLimit::default(),
            mailer: Some(&mailer),
            max_quantity: 999,
            flash_hold: Duration::from_secs(150),
            site: Some("https://shop.example"),
        };
        let request = http::Request::post("https://evil.example/reset").body(format!("email={email}").into()).unwrap();
        let response = respond(services, request, Timestamp::from_millis(0)).now_or_never().unwrap();
        let (head, Body::Bytes(body)) = response.into_parts() else { panic!("no page") };
        (head.status, String::from_utf8(body.to_vec()).unwrap().replace(email, ""))
    };
    let known = ask("ada@example.org");
    assert_eq!((known.0, &known), (StatusCode::OK, &ask("eve@example.org")));
    let mails = mailer.0.into_inner();
    assert_eq!(mails.len(), 1);
    assert!(mails[0].contains("\nhttps://shop.example/reset/") && !mails[0].contains("evil"), "{mails:?}");
}

#[test]
fn no_form_of_another_site_does_anything() {
    let refused: [&[_]; 7] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", "https://shop.example")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        // An attacker on the network can write an unencrypted page.
        &[("origin", "http://shop.example")],
        &[("origin", "https://shop.example"), ("origin", "https://evil.example")],
        &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
    ];
    for headers in refused {
        for path in ["/login", "/logout", "/signup", "/cart", "/checkout"] {
            let (status, answer, _) = send("POST", path, headers, "op=remove&id=mug");
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
            assert!(answer.keys().all(|name| !name.as_str().starts_with("edge-")));
        }
    }
    for headers in [("sec-fetch-site", "same-origin"), ("origin", "https://shop.example")] {
        assert_eq!(send("POST", "/logout", &[headers], "").0, StatusCode::SEE_OTHER, "{headers:?}");
    }
}

#[test]
fn only_uncacheable_pages_contain_a_name() {
    let (status, headers, body) = send("GET", "/cart", &[("edge-user", "<ada>"), ("edge-cart", "{}")], Body::Empty);
    assert_eq!((status, headers["cache-control"].as_bytes()), (StatusCode::OK, &b"no-store"[..]));
    assert!(body.contains("Hello, &#60;ada&#62;"), "{body}");
    assert!(!send("GET", "/cart", &[("edge-cart", "{}")], Body::Empty).2.contains("Hello"));
}

#[test]
fn no_form_page_contains_an_inline_script_or_style() {
    for path in ["/cart", "/checkout", "/login", "/signup"] {
        let page = send("GET", path, &[("edge-cart", "{}")], Body::Empty).2;
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"), "{page}");
        assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/_edge/assets/").count(), "{page}");
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
    }
}

#[test]
fn an_unknown_url_and_a_wrong_method_have_different_statuses() {
    assert_eq!(send("GET", "/nowhere", &[], Body::Empty).0, StatusCode::NOT_FOUND);
    assert_eq!(send("POST", "/nowhere", &[], Body::Empty).0, StatusCode::NOT_FOUND);
    let (status, headers, _) = send("DELETE", "/products/mug", &[], Body::Empty);
    assert_eq!((status, headers["allow"].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"GET, HEAD"[..]));
}

#[test]
fn every_answer_is_strict_and_a_head_has_no_body() {
    for (method, path) in [("GET", "/cart"), ("HEAD", "/cart"), ("GET", "/nowhere"), ("POST", "/logout")] {
        let (_, headers, body) = send(method, path, &[], Body::Empty);
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'self'"), "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(body.is_empty(), method != "GET", "{method} {path}");
    }
    let length = send("GET", "/cart", &[], Body::Empty).2.len();
    assert_eq!(send("HEAD", "/cart", &[], Body::Empty).1["content-length"], length.to_string());
}
