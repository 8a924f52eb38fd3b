//! Orders whose session ends before they are settled: a login of the same visitor replaces it, or a logout ends it.

use std::rc::Rc;

use edgefront::{
    App,
    orders::{Customer, Order},
    schema::{ids::OrderId, token::Token},
    sessions::{self, LoginRequest},
};
use edgefront_gateway::{Fault, FaultScope};
use http::Method;
use serde_json::{Value, json};

use super::{ORDER, cart, check_out, guest_with_cart, orders_with};
use crate::{
    routes::api::{log_in as log_in_by_http, service},
    schema::shards::{lines, put},
    sessions::{log_in, log_out, user, view},
    support::{Reply, Shop, Store, eventually, scenarios, set_cookie, token_of},
};

scenarios!(&[];
    an_order_during_a_login_leaves_the_cart_of_the_new_session,
    an_order_that_is_reported_after_a_login_leaves_the_cart_of_the_new_session,
    an_order_after_the_login_of_another_user_leaves_their_cart_alone,
);

/// Logs `user` in, in another tab of the visitor with `cookie`. Returns the new cookie.
async fn log_in_beside(shop: &Shop, cookie: &str, user: &str, idempotency_key: &str) -> String {
    let request = shop.request(Method::POST, "/_edge/v1/sessions").header("cookie", cookie);
    let request = request.bearer_auth(crate::support::SERVICE_KEY).json(&json!({"user": user}));
    let request = if idempotency_key.is_empty() { request } else { request.header("idempotency-key", idempotency_key) };
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 201);
    set_cookie(&response)
}

/// Reports the order of the session with `cookie`, as a queue does.
async fn report(shop: &Shop, cookie: &str) -> u16 {
    let mut order = serde_json::from_str::<Value>(ORDER).unwrap();
    order["token"] = json!(token_of(cookie));
    service(shop, Method::POST, "/orders", Some(&order)).await.status
}

/// The visitor pays in one tab, and signs in in another one.
async fn an_order_during_a_login_leaves_the_cart_of_the_new_session(shop: &Shop) {
    let guest = guest_with_cart(shop).await;
    shop.origin.hold();
    let asked = shop.origin.count();
    let login = async {
        eventually("the checkout is at the origin", async || shop.origin.count() > asked).await;
        let cookie = log_in_beside(shop, &guest, "ada", "").await;
        shop.origin.release();
        cookie
    };
    let (response, cookie) = tokio::join!(check_out(shop, &guest), login);
    assert_eq!(response.status(), 200);
    assert_eq!(cart(shop, &cookie).await, json!([{"id": "mug", "quantity": 2}]));
    assert_eq!(orders_with(shop, "mug").await, "1");
}

async fn an_order_that_is_reported_after_a_login_leaves_the_cart_of_the_new_session(shop: &Shop) {
    for (number, key) in ["", "key"].into_iter().enumerate() {
        let guest = guest_with_cart(shop).await;
        let first = log_in_beside(shop, &guest, &format!("user-{number}"), key).await;
        let second = log_in_beside(shop, &first, &format!("user-{number}"), key).await;
        shop.store.raw(&["DEL", "order:A-1"]).await;
        for _ in 0..2 {
            assert_eq!(report(shop, &guest).await, 204);
            assert_eq!(cart(shop, &second).await, json!([{"id": "mug", "quantity": 2}]), "{key}");
        }
    }
}

/// Ada's cart does not move to Bob, so her order must not take anything out of his cart.
async fn an_order_after_the_login_of_another_user_leaves_their_cart_alone(shop: &Shop) {
    let guest = guest_with_cart(shop).await;
    let ada = log_in_beside(shop, &guest, "ada", "").await;
    let bob = log_in_beside(shop, &ada, "bob", "").await;
    shop.origin.answer(Reply::html("").header("edge-cart", r#"{"op":"add","id":"mug","quantity":3}"#));
    shop.get("/add").header("cookie", &bob).send().await.unwrap();
    shop.settled().await;
    assert_eq!(report(shop, &ada).await, 204);
    assert_eq!(cart(shop, &bob).await, json!([{"id": "mug", "quantity": 3}]));
}

/// The effects of an order, as a report with `token` has them.
async fn settle(app: &Rc<App>, token: &Token) -> Result<Vec<String>, edgefront::ports::error::Error> {
    let order = Order::parse(r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}"#).unwrap();
    let customer = Customer { token: Some(token), user: None };
    let viewed = order.settle(&app.redis, customer, app.clock.now(), &app.config.session).await?;
    Ok(viewed.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn an_order_costs_one_request_more_only_if_a_login_has_replaced_its_session() {
    for store in [Store::book().await, Store::sharded().await] {
        store.load_scripts().await;
        let app = store.app(&[]);
        let guest = put(&app, None, "mug", 5).await;
        view(&app, &guest, "lamp").await;
        let ada = log_in(&app, Some(&guest), "ada").await;
        let before = store.counts();
        assert_eq!(settle(&app, &guest).await.unwrap(), ["lamp"], "the views moved, too");
        assert_eq!(store.counts().requests - before.requests, 2 + store.apart());
        assert_eq!(lines(&app, &ada).await, Some(json!({"mug": 3})));
        let marker = app.redis.keys().shard_of(&guest).cart_order(&OrderId::parse("A-1").unwrap());
        let ttl: i64 = store.aside.run(upstash_rest::Command::read("TTL").arg(marker)).await.unwrap();
        assert!(ttl > 0, "it does not stay for ever");
        let before = store.counts();
        settle(&app, &guest).await.unwrap();
        settle(&app, &ada).await.unwrap();
        assert_eq!(store.counts().requests - before.requests, 2 + 2 * store.apart());
        assert_eq!(lines(&app, &ada).await, Some(json!({"mug": 3})), "once");
    }
}

#[tokio::test]
async fn an_order_of_a_session_that_has_ended_changes_no_cart_of_its_visitor() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let ada = log_in(&app, None, "ada").await;
    put(&app, Some(&ada), "mug", 5).await;
    log_out(&app, &ada).await;
    // The login of a session that has ended moves no cart.
    let later = log_in(&app, Some(&ada), "ada").await;
    put(&app, Some(&later), "mug", 5).await;
    settle(&app, &ada).await.unwrap();
    settle(&app, &later).await.unwrap();
    assert_eq!(lines(&app, &later).await, Some(json!({"mug": 5})));
}

/// A login that is repeated with another idempotency key moves nothing, because the first one has moved the cart.
#[tokio::test]
async fn an_order_follows_the_login_that_moved_the_cart() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = put(&app, None, "mug", 5).await;
    let mut tokens = Vec::new();
    for key in ["first", "second"] {
        let request =
            LoginRequest { user: &user("ada"), old_token: Some(&guest), label: None, idempotency_key: Some(key) };
        tokens.push(sessions::log_in(&app.redis, &request, app.clock.now(), &app.config.session).await.unwrap());
    }
    assert_eq!(tokens[0], tokens[1], "a form that is sent twice starts one session");
    settle(&app, &guest).await.unwrap();
    assert_eq!(lines(&app, &tokens[0]).await, Some(json!({"mug": 3})));
}

/// The first attempt stops between its two requests. Then the user signs in on a second device, in any shard.
#[tokio::test]
async fn a_repeated_report_of_a_user_takes_the_items_out_of_the_cart_of_the_first_attempt() {
    for device in 0..4 {
        let shop = Shop::spread(&[]).await;
        shop.store.load_scripts().await;
        let app = shop.store.app(&[]);
        let (now, shards) = (app.clock.now(), app.redis.keys().shard_count());
        let mut first = log_in_by_http(&shop, "ada").await;
        assert_eq!(first.put("/cart/items/mug", &json!({"quantity": 2})).await.status, 200);
        let order = json!({"order_id": "A-1", "items": [{"id": "mug", "quantity": 2}], "user": "ada"});
        let report = async || service(&shop, Method::POST, "/orders", Some(&order)).await.status;
        // The newest session, the facts of the order, the cart.
        shop.store.gateway.set_fault_for(Fault::Status(429, "{}".to_owned()), FaultScope::Every(3));
        assert_eq!(report().await, 503);
        shop.store.gateway.set_fault(None);
        let near = Token::new_in_shard(device, shards, now).unwrap();
        shop.store.clock.advance(std::time::Duration::from_secs(1));
        let second = log_in(&app, Some(&near), "ada").await;
        put(&app, Some(&second), "mug", 2).await;
        for _ in 0..2 {
            assert_eq!(report().await, 204);
            assert_eq!(first.get("/cart").await.json["items"], json!([]));
            assert_eq!(lines(&app, &second).await, Some(json!({"mug": 2})), "an order leaves one cart");
        }
    }
}

/// An older isolate recorded the shard only.
#[tokio::test]
async fn an_order_that_an_older_isolate_recorded_leaves_a_cart_of_its_shard() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    let keys = app.redis.keys();
    let marker = keys.order(&OrderId::parse("A-1").unwrap());
    store.aside.run::<u64>(upstash_rest::Command::write("HSET").arg(marker).args(["shard", "2"])).await.unwrap();
    let mut left = Vec::new();
    for shard in keys.shards() {
        let token = Token::new_in_shard(shard.number(), keys.shard_count(), app.clock.now()).unwrap();
        let token = put(&app, Some(&token), "mug", 5).await;
        settle(&app, &token).await.unwrap();
        left.push(lines(&app, &token).await.unwrap()["mug"].clone());
    }
    assert_eq!(left, [5, 5, 3, 5]);
}
