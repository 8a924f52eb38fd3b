//! V2.4 Anti-automation, V6.3 brute force: the rate limits of `wrangler.toml`, as the platform's own simulation counts
//! them.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::Method;
use serde_json::json;

use crate::{
    routes::api::{Answer, Visitor, with_json},
    support::{SERVICE_KEY, Shop},
};

/// As in `wrangler.toml`.
const LOGINS: usize = 20;
pub const WRITES: usize = 120;
const VIEWS: usize = 1;
/// The platform counts by calendar minutes, so a run that crosses a minute may pass twice the limit.
pub const TWO_WINDOWS: usize = 2;

/// Waits for the next minute if this one ends within 20 s. A refused client stays refused until then.
async fn early_in_a_minute() {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 60;
    if elapsed >= 40 {
        tokio::time::sleep(Duration::from_secs(60 - elapsed)).await;
    }
}

/// Sends the request until it gets 429. Returns the number of other responses, and the 429.
async fn until_refused(limit: usize, request: impl Fn() -> reqwest::RequestBuilder) -> (usize, reqwest::Response) {
    early_in_a_minute().await;
    for sent in 0..=limit * TWO_WINDOWS {
        let answer = request().send().await.unwrap();
        if answer.status() == 429 {
            return (sent, answer);
        }
    }
    panic!("never refused");
}

/// V6.3.1, V2.4.1
#[tokio::test]
async fn signing_in_in_workerd_is_limited_for_each_network() {
    let shop = Shop::limited(&[]).await;
    let from = |address: &'static str, path: &str| shop.request(Method::POST, path).header("cf-connecting-ip", address);

    let (sent, refused) = until_refused(LOGINS, || from("2001:db8::1", "/login").header("accept", "text/html")).await;

    assert!(sent >= LOGINS, "{sent}");
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(refused.headers()["cache-control"], "private, no-store");
    assert!(refused.text().await.unwrap().contains("Too many attempts"));
    let asked = shop.origin.count();
    // Another address of the same /64, with another spelling of the path that an origin may accept.
    for path in
        ["/login", "/Login/", "/%6Cogin", "//login;x=y", "/login.json", "/login%00", "/index.php/login", "/signup"]
    {
        assert_eq!(from("2001:db8::ffff:2", path).send().await.unwrap().status(), 429, "{path}");
    }
    assert_eq!(shop.origin.count(), asked, "the origin is not asked");
    for (address, path) in [("2001:db8:0:1::1", "/login"), ("2001:db8::1", "/cart")] {
        assert_eq!(from(address, path).send().await.unwrap().status(), 200, "{address} {path}");
    }
    assert_eq!(shop.get("/login").header("cf-connecting-ip", "2001:db8::1").send().await.unwrap().status(), 200);
}

/// V6.3.1: an attacker with many networks is stopped by the account's name.
#[tokio::test]
async fn an_account_in_workerd_is_not_tried_without_end_from_many_networks() {
    let shop = Shop::limited(&[("ORIGIN_URL", "")]).await;
    let number = std::cell::Cell::new(0);
    let sign_in = |mail: &str, password: &str| {
        number.set(number.get() + 1);
        let form = format!("email={}&password={password}", mail.replace('@', "%40"));
        let request =
            shop.request(Method::POST, "/login").header("cf-connecting-ip", format!("203.0.113.{}", number.get()));
        request.header("content-type", "application/x-www-form-urlencoded").body(form)
    };
    let (sent, refused) = until_refused(LOGINS, || sign_in("ada@example.org", "wrong+and+long+enough")).await;
    assert!(sent >= LOGINS, "{sent}");
    assert_eq!(refused.headers()["retry-after"], "60");
    assert!(refused.text().await.unwrap().contains("Too many attempts"));
    assert_eq!(sign_in("ADA@example.org", "another").send().await.unwrap().status(), 429);
    assert_eq!(sign_in("bob@example.org", "another").send().await.unwrap().status(), 422);
}

/// V6.3.1: an attacker who tries passwords must not lock the owner out.
#[tokio::test]
async fn an_attacker_in_workerd_does_not_lock_an_account_for_its_owner() {
    let shop = Shop::limited(&[("ORIGIN_URL", "")]).await;
    let post = |path: &str, address: &str, fields: &[(&str, &str)]| {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = shop.request(Method::POST, path).header("cf-connecting-ip", address);
        request.header("content-type", "application/x-www-form-urlencoded").body(form)
    };
    let (email, password) = ("ada@example.org", "five unrelated words are enough");
    let sign_in = |address: &str, password: &str| post("/login", address, &[("email", email), ("password", password)]);
    let status = async |request: reqwest::RequestBuilder| request.send().await.unwrap().status().as_u16();
    let account = [("name", "Ada"), ("email", email), ("password", password)];
    assert_eq!(status(post("/signup", "203.0.113.1", &account)).await, 303);

    let (sent, refused) = until_refused(LOGINS, || sign_in("203.0.113.66", "wrong and long enough")).await;

    assert!(sent >= 5 && refused.text().await.unwrap().contains("Too many attempts"), "{sent}");
    // The delay doubles with each failure, and an attempt within it does not prolong it.
    for (failures, delay) in [(12, 128_u64), (14, 512), (20, 900)] {
        let elapsed = delay - 60;
        let earlier = format!("failures = {failures}, tried_at = tried_at - (tried_at - unixepoch()) - {elapsed}");
        shop.sql(&format!("UPDATE sign_in_attempts SET {earlier} WHERE network = '203.0.113.66'")).await;
        for _ in 0..2 {
            let refused = sign_in("203.0.113.66", password).send().await.unwrap();
            assert_eq!(refused.status(), 429, "the right password is refused, too: no answer tells it apart");
            let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{failures}: {wait}");
        }
    }
    for address in ["203.0.113.1", "198.51.100.7", "2001:db8::1"] {
        assert_eq!(status(sign_in(address, password)).await, 303, "the owner at {address}");
    }
    // With many networks, an attacker uses up the account's limit for networks that the shop does not know.
    let number = std::cell::Cell::new(0);
    until_refused(LOGINS, || {
        number.set(number.get() + 1);
        sign_in(&format!("192.0.2.{}", number.get()), "wrong and long enough")
    })
    .await;
    assert_eq!(status(sign_in("192.0.2.250", password)).await, 429);
    assert_eq!(status(sign_in("203.0.113.1", password)).await, 303, "the owner at a known address");
}

/// V2.4.1
#[tokio::test]
async fn writes_in_workerd_are_limited_for_each_network_and_route() {
    let shop = Shop::limited(&[]).await;
    let nobody = Visitor::new(&shop);
    let add = || with_json(nobody.request(Method::POST, "/cart/items"), &json!({"id": "mug", "quantity": 1}));

    let (sent, _) = until_refused(WRITES, add).await;

    assert!(sent >= WRITES, "{sent}");
    let refused = Answer::to(add()).await;
    assert_eq!((refused.header("retry-after"), refused.header("content-type")), ("60", "application/problem+json"));
    assert_eq!(refused.json["type"], "urn:edgefront:too-often");
    let sessions = shop.store.raw(&["HLEN", "login:"]).await;
    assert_eq!(sessions, sent, "what is refused has no effect");
    assert_eq!(add().header("cf-connecting-ip", "203.0.113.1").send().await.unwrap().status(), 200);
    let view = || with_json(nobody.request(Method::POST, "/views"), &json!({"item": "mug"}));
    let (sent, _) = until_refused(WRITES, view).await;
    assert!(sent >= WRITES, "{sent}");
    assert_eq!(shop.visit("/_edge/v1/cart").await.status(), 200, "reads are not counted");
}

/// V2.4.1: changes of a cart by the origin (`Edge-Cart`) are limited, too.
#[tokio::test]
async fn carts_that_the_origin_changes_in_workerd_are_limited_too() {
    let shop = Shop::limited(&[]).await;
    let add = crate::support::Reply::html("added").header("edge-cart", r#"{"op":"add","id":"mug","quantity":1}"#);
    shop.origin.answer(add);
    let (sent, refused) = until_refused(WRITES, || shop.request(Method::POST, "/any/form")).await;
    assert!(sent >= WRITES && !refused.headers().contains_key("set-cookie"), "{sent}");
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, sent);
    // The storefront has accepted an order, so the limit does not refuse it.
    let order = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":1}]}"#;
    let thanks = crate::support::Reply::html("thank you").header("edge-order", order);
    shop.origin.answer(thanks.header("edge-cart", r#"{"op":"add","id":"gift","quantity":1}"#));
    let answer = shop.request(Method::POST, "/any/form").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().contains_key("set-cookie")), (200, true));
}

/// V6.3.1: the service's key.
#[tokio::test]
async fn the_service_key_in_workerd_is_not_guessed_without_end() {
    let shop = Shop::limited(&[]).await;
    let call = |key: &str, address: &'static str| {
        shop.get("/_edge/v1/jobs").bearer_auth(key).header("cf-connecting-ip", address)
    };
    for _ in 0..=LOGINS {
        assert_eq!(call(SERVICE_KEY, "203.0.113.1").send().await.unwrap().status(), 200, "a right key is not counted");
    }
    let guess = std::cell::Cell::new(String::new());
    let (sent, refused) = until_refused(LOGINS, || {
        let mut next = guess.take();
        let _ = write!(next, "x");
        guess.set(next.clone());
        call(&next, "203.0.113.1")
    })
    .await;
    assert!(sent >= LOGINS && refused.headers()["retry-after"] == "60", "{sent}");
    // Or the answer would tell which guess was right.
    assert_eq!(call(SERVICE_KEY, "203.0.113.1").send().await.unwrap().status(), 429);
    assert_eq!(call(SERVICE_KEY, "203.0.113.2").send().await.unwrap().status(), 200);
    assert_eq!(shop.get("/_edge/v1/jobs").send().await.unwrap().status(), 401, "no key is no guess");
}

/// V2.4.1: the tests use the limits that are deployed.
#[tokio::test]
async fn the_limits_are_those_of_wrangler_toml_and_readyz_says_so() {
    let text = include_str!("../../../../wrangler.toml");
    for (name, limit) in [("LOGIN_LIMIT", LOGINS), ("WRITE_LIMIT", WRITES), ("VIEW_LIMIT", VIEWS)] {
        let (_, section) = text.split_once(&format!("name = \"{name}\"\n")).unwrap();
        assert_eq!(section.lines().nth(1).unwrap(), format!("simple = {{ limit = {limit}, period = 60 }}"));
    }
    assert_eq!(edgefront::ports::rate_limit::PERIOD.as_secs(), 60);
    let shop = Shop::native(&[]).await;
    let mut nobody = Visitor::new(&shop);
    for _ in 0..=WRITES {
        assert_eq!(nobody.put("/cart/items/mug", &json!({"quantity": 1})).await.status, 200);
    }
    assert_eq!(nobody.get("/readyz").await.json["limits"], "none");
}

#[tokio::test]
async fn limits_in_workerd_are_ready() {
    let shop = Shop::limited(&[]).await;
    assert_eq!(Visitor::new(&shop).get("/readyz").await.json["limits"], "ok");
}
