//! `Edge-Order`: the effects of an order that the origin reports in its response.

pub mod flash_sale;
mod insights;
/// The session of an order ends before the order is settled.
mod sessions;

use std::time::{Duration, Instant};

use edgefront_gateway::{Fault, FaultScope};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Reply, Shop, scenarios, set_cookie, token_of};

scenarios!(&[];
    bought_items_leave_the_cart_before_the_response,
    an_order_beyond_the_limits_of_a_cart_is_settled,
    a_repeated_order_changes_nothing,
    items_that_were_not_in_the_cart_leave_no_cart,
    an_order_counts_the_items_its_visitor_viewed,
    an_order_without_a_session_counts,
    an_order_and_a_login_in_one_response,
    an_order_and_a_logout_in_one_response,
    a_response_with_an_order_is_not_stored,
    an_invalid_order_is_logged_and_the_response_is_sent,
    a_failure_of_redis_does_not_fail_the_response_and_a_repeated_order_is_settled,
    an_order_is_settled_two_to_four_seconds_later_if_redis_refuses_it,
    an_order_is_never_answered_as_refused,
);

const ORDER: &str = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2},{"id":"pan","quantity":1}]}"#;

/// Returns the cookie of a guest with four mugs and a pan. From now on the origin responds with an order.
async fn guest_with_cart(shop: &Shop) -> String {
    shop.origin.answer(Reply::html("").header("edge-cart", r#"{"op":"add","id":"mug","quantity":4}"#));
    let response = shop.visit("/add").await;
    let cookie = set_cookie(&response);
    shop.origin.answer(Reply::html("").header("edge-cart", r#"{"op":"add","id":"pan","quantity":1}"#));
    shop.get("/add").header("cookie", &cookie).send().await.unwrap();
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER));
    shop.settled().await;
    cookie
}

async fn check_out(shop: &Shop, cookie: &str) -> reqwest::Response {
    let request = shop.request(Method::POST, "/buy").header("cookie", cookie);
    request.send().await.unwrap()
}

async fn cart(shop: &Shop, cookie: &str) -> Value {
    let response = shop.get("/_edge/v1/cart").header("cookie", cookie).send().await.unwrap();
    response.json::<Value>().await.unwrap()["items"].clone()
}

/// Settles an order of another item. From then on, the server knows the script.
async fn settle_first_order(shop: &Shop, cookie: &str) {
    shop.origin.answer(Reply::html("").header("edge-order", r#"{"order_id":"0","items":[{"id":"x","quantity":1}]}"#));
    check_out(shop, cookie).await;
    shop.settled().await;
}

async fn orders_with(shop: &Shop, item: &str) -> Value {
    shop.settled().await;
    shop.store.raw(&["ZSCORE", "bought:", item]).await
}

async fn bought_items_leave_the_cart_before_the_response(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    settle_first_order(shop, &cookie).await;
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER));

    let response = check_out(shop, &cookie).await;

    assert_eq!(response.status(), 200);
    assert_eq!(shop.blocking_requests().await, 2 + shop.store.apart(), "the session, and the order");
    assert!(!response.headers().contains_key("edge-order") && !response.headers().contains_key("set-cookie"));
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert_eq!((orders_with(shop, "mug").await, orders_with(shop, "pan").await), (json!("1"), json!("1")));
}

async fn a_repeated_order_changes_nothing(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    for _ in 0..3 {
        // The visitor reloads the thank-you page.
        assert_eq!(check_out(shop, &cookie).await.status(), 200);
        assert_eq!(orders_with(shop, "mug").await, "1");
    }
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "mug", "quantity": 2}]));
}

/// The visitor buys a piece of a flash sale, and has the same item in the cart.
async fn items_that_were_not_in_the_cart_leave_no_cart(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER.replace("]}", r#"],"in_cart":false}"#)));
    assert_eq!(check_out(shop, &cookie).await.status(), 200);
    let whole = json!([{"id": "mug", "quantity": 4}, {"id": "pan", "quantity": 1}]);
    assert_eq!(cart(shop, &cookie).await, whole);
    assert_eq!(orders_with(shop, "mug").await, "1");
    // The first report decides.
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER));
    check_out(shop, &cookie).await;
    assert_eq!(cart(shop, &cookie).await, whole);
}

async fn an_order_counts_the_items_its_visitor_viewed(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    shop.store.raw(&["ZADD", &format!("viewed:{}", token_of(&cookie)), "1", "lamp", "2", "mug"]).await;
    check_out(shop, &cookie).await;
    shop.settled().await;
    let viewed = shop.visit("/_edge/v1/items/lamp/related?by=viewed").await.json::<Value>().await.unwrap();
    let items = json!([{"id": "mug", "share": 1.0}, {"id": "pan", "share": 1.0}]);
    assert_eq!(viewed, json!({"items": items, "orders": 1.0}));
}

async fn an_order_without_a_session_counts(shop: &Shop) {
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER));
    let response = check_out(shop, "own=1").await;
    assert_eq!((response.status().as_u16(), shop.blocking_requests().await), (200, 0));
    assert_eq!(orders_with(shop, "mug").await, "1");
}

/// A checkout that creates an account: the rest of the cart moves to the new session.
async fn an_order_and_a_login_in_one_response(shop: &Shop) {
    let guest = guest_with_cart(shop).await;
    shop.origin.answer(Reply::html("welcome").header("edge-order", ORDER).header("edge-login", "ada"));
    let response = check_out(shop, &guest).await;
    let cookie = &set_cookie(&response);
    assert_ne!(token_of(cookie), token_of(&guest));
    assert_eq!(cart(shop, cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert_eq!(orders_with(shop, "mug").await, "1");
}

async fn an_order_and_a_logout_in_one_response(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    shop.origin.answer(Reply::html("bye").header("edge-order", ORDER).header("edge-logout", "1"));
    assert_eq!(check_out(shop, &cookie).await.status(), 200);
    assert_eq!(orders_with(shop, "mug").await, "1");
    let abandoned = shop.store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!(abandoned[0][1][5], r#"["mug","2"]"#, "bought items are not abandoned");
}

async fn a_response_with_an_order_is_not_stored(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
    shop.origin
        .answer(Reply::html("thank you").header("edge-order", ORDER).header("cache-control", "public, max-age=60"));
    for count in 1..=2 {
        assert_eq!(shop.visit("/products/mug").await.status(), 200);
        shop.settled().await;
        assert_eq!(shop.origin.count(), count, "the page is not stored");
    }
    assert_eq!(orders_with(shop, "pan").await, "1");
}

async fn an_order_beyond_the_limits_of_a_cart_is_settled(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    let others = (0..200).map(|number| json!({"id": format!("other-{number}"), "quantity": 1}));
    let items: Vec<_> = std::iter::once(json!({"id": "mug", "quantity": 1_500})).chain(others).collect();
    let order = json!({"order_id": "A-1", "items": items}).to_string();
    shop.origin.answer(Reply::html("thank you").header("edge-order", &*order));
    check_out(shop, &cookie).await;
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "pan", "quantity": 1}]));
}

async fn an_invalid_order_is_logged_and_the_response_is_sent(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    shop.origin.answer(Reply::html("thank you").header("edge-order", r#"{"order_id":"1","items":[]}"#));
    let response = check_out(shop, &cookie).await;
    assert_eq!(response.text().await.unwrap(), "thank you");
    shop.logged("edge-order is invalid and was ignored: items must be a list of 1 to 500 items").await;
    assert_eq!(cart(shop, &cookie).await[0]["quantity"], 4);
}

async fn a_failure_of_redis_does_not_fail_the_response_and_a_repeated_order_is_settled(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    let response = check_out(shop, &cookie).await;
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "thank you"));
    shop.logged("an order was not settled before the response").await;
    shop.settled().await;
    shop.store.gateway.set_fault(None);
    assert_eq!(cart(shop, &cookie).await[0]["quantity"], 4, "the cart is unchanged");
    // The visitor reloads the thank-you page: now the order is settled.
    check_out(shop, &cookie).await;
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert_eq!(orders_with(shop, "mug").await, "1");
}

/// A plan may limit the commands in a second. A retry at once would meet the same limit.
async fn an_order_is_settled_two_to_four_seconds_later_if_redis_refuses_it(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    let gateway = shop.store.gateway.clone();
    shop.origin.answer_with(move |_| {
        gateway.set_fault_for(Fault::Status(429, "{}".to_owned()), FaultScope::Next(1));
        Reply::html("thank you").header("edge-order", ORDER)
    });
    let began = Instant::now();
    assert_eq!(check_out(shop, &cookie).await.status(), 200);
    shop.settled().await;
    let pause = began.elapsed();
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert!(pause >= Duration::from_secs(2), "{pause:?}");
    assert_eq!(orders_with(shop, "mug").await, "1");
}

/// Beside the order, the response changes the cart, or logs the visitor in or out.
async fn an_order_is_never_answered_as_refused(shop: &Shop) {
    let cookie = guest_with_cart(shop).await;
    let gift = r#"{"op":"add","id":"gift","quantity":1}"#;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    for (name, value) in [("edge-cart", gift), ("edge-login", "ada"), ("edge-logout", "all")] {
        shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER).header(name, value));
        let response = check_out(shop, &cookie).await;
        let cleared =
            response.headers().get("set-cookie").is_some_and(|set| set.to_str().unwrap().contains("Max-Age=0"));
        assert_eq!((response.status().as_u16(), cleared), (200, name == "edge-logout"), "{name}");
        assert_eq!(response.text().await.unwrap(), "thank you", "{name}");
        shop.settled().await;
    }
    shop.store.gateway.set_fault(None);
    shop.logged("not all of its other directives were executed").await;
    // A cart that is full refuses the change, but not the order.
    let (full, key) = (guest_with_cart(shop).await, "edge-cart");
    let lines: Vec<_> =
        (0..99).map(|number| json!({"op": "add", "id": format!("item-{number}"), "quantity": 1})).collect();
    for change in [json!(lines[..98]).to_string(), gift.to_owned()] {
        shop.origin
            .answer(Reply::html("thank you").header("edge-order", &*ORDER.replace("A-1", "A-2")).header(key, &*change));
        assert_eq!(check_out(shop, &full).await.status(), 200);
    }
    shop.origin.answer(Reply::html("added").header(key, gift));
    shop.origin.answer(Reply::html("added").header(key, r#"{"op":"add","id":"one-too-many","quantity":1}"#));
    assert_eq!(check_out(shop, &full).await.status(), 409, "without an order, the visitor learns it");
}

/// The login has ended the old session, so its cookie must reach the visitor.
#[tokio::test]
async fn a_cart_change_that_is_refused_after_a_login_keeps_the_login() {
    let shop = Shop::native(&[("CART_MAX_LINES", "2")]).await;
    let guest = guest_with_cart(&shop).await;
    let change = r#"{"op":"add","id":"lamp","quantity":1}"#;
    shop.origin.answer(Reply::html("welcome").header("edge-login", "ada").header("edge-cart", change));
    let response = check_out(&shop, &guest).await;
    assert_eq!(response.status(), 409);
    let cookie = &set_cookie(&response);
    assert_eq!(cart(&shop, cookie).await.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_cart_change_beside_an_order_whose_reply_is_lost_happens_once() {
    let shop = Shop::book(&[]).await;
    let cookie = guest_with_cart(&shop).await;
    settle_first_order(&shop, &cookie).await;
    let gift = r#"{"op":"add","id":"gift","quantity":1}"#;
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER).header("edge-cart", gift));
    shop.store.gateway.set_fault(Some(Fault::LoseReply));
    assert_eq!(check_out(&shop, &cookie).await.status(), 200);
    shop.settled().await;
    shop.store.gateway.set_fault(None);
    let cart = cart(&shop, &cookie).await;
    assert_eq!(cart, json!([{"id": "gift", "quantity": 1}, {"id": "mug", "quantity": 2}]));
}

#[tokio::test]
async fn an_order_whose_reply_is_lost_is_settled_once() {
    let shop = Shop::book(&[]).await;
    let cookie = guest_with_cart(&shop).await;
    settle_first_order(&shop, &cookie).await;
    shop.origin.answer(Reply::html("thank you").header("edge-order", ORDER));
    shop.store.gateway.set_fault(Some(Fault::LoseReply));
    assert_eq!(check_out(&shop, &cookie).await.status(), 200);
    shop.settled().await;
    shop.store.gateway.set_fault(None);
    assert_eq!(
        cart(&shop, &cookie).await,
        json!([{"id": "mug", "quantity": 2}]),
        "two of four mugs, although the script ran several times"
    );
    assert_eq!(shop.store.raw(&["HGET", "order:A-1", "cart"]).await, "1");
}

/// The origin answers with `reply`. From then on, the gateway does not execute the requests of `scope`.
fn answer_and_fail(shop: &Shop, reply: Reply, scope: FaultScope) {
    let gateway = shop.store.gateway.clone();
    shop.origin.answer_with(move |_| {
        gateway.set_fault_for(Fault::Refuse, scope);
        reply.clone()
    });
}

#[tokio::test]
async fn an_order_that_is_settled_after_a_login_leaves_the_cart_of_the_new_session() {
    let shop = Shop::book(&[]).await;
    let guest = guest_with_cart(&shop).await;
    shop.store.load_scripts().await;
    // Two attempts before the response, each of which the client repeats.
    let reply = Reply::html("welcome").header("edge-order", ORDER).header("edge-login", "ada");
    answer_and_fail(&shop, reply, FaultScope::Next(4));
    let response = check_out(&shop, &guest).await;
    let cookie = &set_cookie(&response);
    shop.settled().await;
    assert_eq!(cart(&shop, cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert_eq!(orders_with(&shop, "mug").await, "1");
}

#[tokio::test]
async fn an_order_whose_first_attempt_fails_is_settled_before_a_logout() {
    let shop = Shop::book(&[]).await;
    let guest = guest_with_cart(&shop).await;
    shop.store.load_scripts().await;
    let reply = Reply::html("bye").header("edge-order", ORDER).header("edge-logout", "1");
    answer_and_fail(&shop, reply, FaultScope::Next(2));
    assert_eq!(check_out(&shop, &guest).await.status(), 200);
    shop.settled().await;
    let abandoned = shop.store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!(abandoned[0][1][5], r#"["mug","2"]"#, "bought items are not abandoned");
    assert_eq!(orders_with(&shop, "mug").await, "1");
}

#[tokio::test]
async fn a_cart_change_that_fails_between_an_order_and_a_login_reaches_the_new_session() {
    let shop = Shop::book(&[]).await;
    let guest = guest_with_cart(&shop).await;
    shop.store.load_scripts().await;
    let gift = r#"{"op":"add","id":"gift","quantity":1}"#;
    let reply = Reply::html("welcome").header("edge-order", ORDER).header("edge-login", "ada");
    // The order, the login, the cart.
    answer_and_fail(&shop, reply.header("edge-cart", gift), FaultScope::Every(3));
    let response = check_out(&shop, &guest).await;
    let cookie = &set_cookie(&response);
    shop.settled().await;
    shop.store.gateway.set_fault(None);
    let expected = json!([{"id": "gift", "quantity": 1}, {"id": "mug", "quantity": 2}]);
    assert_eq!(cart(&shop, cookie).await, expected);
}
