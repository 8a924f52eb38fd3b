//! `/session` and `/recent` of the visitor, and `POST /sessions` of a service.

use std::time::Duration;

use edgefront::schema::token::Token;
use http::Method;
use serde_json::{Value, json};

use super::{Visitor, log_in, service, with_json};
use crate::support::{SERVICE_KEY, Shop, scenarios};

scenarios!(&[];
    a_visitor_without_a_cookie_is_anonymous,
    the_service_logs_a_user_in_and_the_user_logs_out,
    a_guests_cart_moves_along_at_login,
    a_retried_login_finds_the_session_of_the_first,
    the_cookie_of_an_ended_session_is_cleared,
    a_session_call_costs_one_redis_request,
    an_invalid_user_is_refused,
);

fn session(user: Option<&str>, guest: bool, lines: u32, quantity: u32) -> Value {
    json!({"user": user, "guest": guest, "cart": {"lines": lines, "quantity": quantity}})
}

async fn a_visitor_without_a_cookie_is_anonymous(shop: &Shop) {
    let mut nobody = Visitor::new(shop);
    let before = shop.store.counts().requests;
    let answer = nobody.get("/session").await;
    assert_eq!((answer.status, &answer.json), (200, &session(None, false, 0, 0)));
    assert_eq!((answer.header("set-cookie"), answer.header("cache-control")), ("", "private, no-store"));
    assert_eq!(nobody.get("/recent").await.json, json!({"items": []}));
    assert_eq!(nobody.delete("/session").await.status, 204);
    assert_eq!(shop.store.counts().requests, before);

    nobody.put("/cart/items/mug", &json!({"quantity": 2})).await;
    assert_eq!(nobody.get("/session").await.json, session(None, true, 1, 2));
}

async fn the_service_logs_a_user_in_and_the_user_logs_out(shop: &Shop) {
    let answer = service(shop, Method::POST, "/sessions", Some(&json!({"user": "ada@example.org"}))).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.cookie().as_deref(), answer.json["cookie"].as_str());
    let token = answer.json["token"].as_str().expect("a token");
    assert_eq!(shop.store.raw(&["HGET", "login:", token]).await, "ada@example.org");
    let mut ada = Visitor::with_cookie(shop, answer.cookie().expect("a cookie"));
    assert_eq!(ada.get("/session").await.json, session(Some("ada@example.org"), false, 0, 0));
    let old = ada.cookie.clone().expect("a cookie");

    let answer = ada.delete("/session").await;

    assert_eq!((answer.status, answer.json, ada.cookie.as_ref()), (204, Value::Null, None));
    let mut thief = Visitor::with_cookie(shop, old);
    assert_eq!(thief.get("/session").await.json, session(None, false, 0, 0));
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 0);
    assert_eq!(shop.store.raw(&["ZCARD", "recent:"]).await, 0);
}

async fn a_guests_cart_moves_along_at_login(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let old = guest.cookie.clone().expect("a cookie");
    let request = shop.request(Method::POST, "/_edge/v1/sessions").bearer_auth(SERVICE_KEY);
    let request = with_json(request.header("cookie", &old), &json!({"user": "ada"}));

    guest.send(request).await;

    assert_ne!(guest.cookie.as_ref(), Some(&old));
    assert_eq!(guest.get("/session").await.json, session(Some("ada"), false, 1, 2));
    assert_eq!(Visitor::with_cookie(shop, old).get("/session").await.json, session(None, false, 0, 0));
}

async fn a_retried_login_finds_the_session_of_the_first(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let old = guest.cookie.clone().expect("a cookie");
    let log_in = |user: &str, key: &str| {
        let request = shop.request(Method::POST, "/_edge/v1/sessions").bearer_auth(SERVICE_KEY);
        with_json(request.header("cookie", &old).header("idempotency-key", key), &json!({"user": user}))
    };
    // The first response is lost, and with it the only copy of the token that the cart has moved to.
    log_in("ada", "first").send().await.expect("an answer");

    assert_eq!(guest.send(log_in("ada", "first")).await.status, 201);

    assert_eq!(guest.get("/session").await.json, session(Some("ada"), false, 1, 2));
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 1);
    let ada = guest.cookie.clone();
    for (user, key) in [("bob", "first"), ("ada", "second")] {
        assert_eq!(guest.send(log_in(user, key)).await.status, 201);
        assert_ne!(guest.cookie, ada, "{user} {key}");
    }
    Visitor::with_cookie(shop, ada.clone().expect("a cookie")).delete("/session").await;
    guest.send(log_in("ada", "first")).await;
    assert_ne!(guest.cookie, ada, "a logged-out session is not revived");
}

async fn the_cookie_of_an_ended_session_is_cleared(shop: &Shop) {
    let app = shop.store.app(&[]);
    let old = Token::new(app.clock.now() - Duration::from_mins(11)).expect("a token");
    let dead = app.keyring.pair(&old).expect("a cookie");
    for cookie in [&*dead, "__Host-session=forged", "a=1; __Host-session="] {
        let answer = Visitor::with_cookie(shop, cookie).get("/session").await;
        assert_eq!(answer.cookie().as_deref(), Some("__Host-session="), "{cookie}");
        // A response that is slower than a login must not clear the new cookie: only `/session` clears one.
        for path in ["/cart", "/recent"] {
            assert_eq!(Visitor::with_cookie(shop, cookie).get(path).await.header("set-cookie"), "", "{path}");
        }
    }
    assert_eq!(Visitor::with_cookie(shop, "a=__Host-session").get("/session").await.header("set-cookie"), "");
    // On a lagging replica, a new session looks like an ended one.
    let mut ada = log_in(shop, "ada").await;
    let young = ada.cookie.clone().expect("a cookie");
    ada.delete("/session").await;
    let answer = Visitor::with_cookie(shop, young).get("/session").await;
    assert_eq!((&answer.json["user"], answer.header("set-cookie")), (&json!(null), ""));
}

async fn a_session_call_costs_one_redis_request(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    log_in(shop, "bob").await.delete("/session").await;
    for path in ["/session", "/recent"] {
        let before = shop.store.counts().requests;
        assert_eq!(ada.get(path).await.status, 200, "{path}");
        assert_eq!(shop.store.counts().requests - before, 1, "{path}");
    }
    let before = shop.store.counts().requests;
    ada.delete("/session").await;
    assert_eq!(shop.store.counts().requests - before, 1, "logout");
    log_in(shop, "ada").await;
    assert_eq!(shop.store.counts().requests - before, 2, "login");
}

async fn an_invalid_user_is_refused(shop: &Shop) {
    for (body, field) in [
        (json!({"user": ""}), "user"),
        (json!({"user": "a b"}), "user"),
        (json!({"user": 7}), "user"),
        (json!({"user": "a".repeat(129)}), "user"),
        (json!({}), "user"),
        (json!({"user": "ada", "admin": true}), "body"),
    ] {
        let answer = service(shop, Method::POST, "/sessions", Some(&body)).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{body}");
        assert_eq!(answer.header("set-cookie"), "");
    }
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 0);
}
