//! `/users/{user}/sessions`: a service reads and ends the sessions of a user.

use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, log_in, service};
use crate::support::{Shop, scenarios};

scenarios!(&[];
    a_service_lists_the_sessions_of_a_user,
    a_service_sees_the_cart_and_the_viewed_items_of_a_session,
    a_service_ends_one_session,
    a_session_of_another_user_is_not_found,
    the_routes_are_closed_to_visitors,
);

async fn sessions(shop: &Shop, user: &str) -> Vec<Value> {
    let answer = service(shop, Method::GET, &format!("/users/{user}/sessions"), None).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"), "{answer:?}");
    answer.json["sessions"].as_array().expect("a list").clone()
}

async fn id_of_only(shop: &Shop, user: &str) -> String {
    let [session] = <[Value; 1]>::try_from(sessions(shop, user).await).expect("one session");
    session["id"].as_str().expect("an id").to_owned()
}

async fn a_service_lists_the_sessions_of_a_user(shop: &Shop) {
    let (ada, _other) = (log_in(shop, "ada@example.com").await, log_in(shop, "bob").await);
    let phone = json!({"user": "ada@example.com", "device": "The phone"});
    assert_eq!(service(shop, Method::POST, "/sessions", Some(&phone)).await.status, 201);
    shop.store.load_scripts().await;
    let before = shop.store.counts().requests;

    let listed = sessions(shop, "ada%40example.com").await;

    assert_eq!(shop.store.counts().requests - before, 1);
    let devices: Vec<_> = listed.iter().map(|session| &session["device"]).collect();
    assert_eq!(devices, [&json!("The phone"), &json!(null)], "newest login first");
    assert!(!format!("{listed:?}").contains(&ada.token()));
    assert_eq!(sessions(shop, "nobody").await, [] as [Value; 0]);
    assert_eq!(service(shop, Method::GET, "/users/a%20b/sessions", None).await.json["field"], "user");
}

async fn a_service_sees_the_cart_and_the_viewed_items_of_a_session(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    ada.put("/cart/items/mug", &json!({"quantity": 2})).await;
    shop.store.raw(&["ZADD", &format!("viewed:{}", ada.token()), "1", "pan", "2", "mug"]).await;
    let id = id_of_only(shop, "ada").await;
    let before = shop.store.counts().requests;

    let answer = service(shop, Method::GET, &format!("/users/ada/sessions/{id}"), None).await;

    assert_eq!(shop.store.counts().requests - before, 2);
    assert_eq!((answer.status, &answer.json["id"]), (200, &json!(id)), "{answer:?}");
    assert_eq!(answer.json["cart"], json!({"items": [{"id": "mug", "quantity": 2}], "lines": 1, "quantity": 2}));
    assert_eq!(answer.json["recent"], json!(["mug", "pan"]));
    assert!(!answer.json.to_string().contains(&ada.token()));
}

async fn a_service_ends_one_session(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    ada.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let id = id_of_only(shop, "ada").await;
    let mut other = log_in(shop, "ada").await;

    let answer = service(shop, Method::DELETE, &format!("/users/ada/sessions/{id}"), None).await;

    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(ada.get("/session").await.json["user"], Value::Null);
    assert_eq!(other.get("/session").await.json["user"], "ada");
    let carts = service(shop, Method::GET, "/abandoned", None).await.json;
    assert_eq!(carts["carts"][0]["items"], json!([{"id": "mug", "quantity": 2}]), "{carts}");
    assert_eq!(service(shop, Method::DELETE, &format!("/users/ada/sessions/{id}"), None).await.status, 404);
}

async fn a_session_of_another_user_is_not_found(shop: &Shop) {
    let (_ada, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    let id = id_of_only(shop, "bob").await;
    for id in [id.as_str(), "0123456789abcdef", "x", "%ff"] {
        for method in [Method::GET, Method::DELETE] {
            let answer = service(shop, method, &format!("/users/ada/sessions/{id}"), None).await;
            assert_eq!((answer.status, &answer.json["type"]), (404, &json!("urn:edgefront:not-found")), "{id}");
        }
    }
    assert_eq!(bob.get("/session").await.json["user"], "bob");
}

async fn the_routes_are_closed_to_visitors(shop: &Shop) {
    let ada = log_in(shop, "ada").await;
    let id = id_of_only(shop, "ada").await;
    let before = shop.store.counts().requests;
    for (method, path) in [
        (Method::GET, "/users/ada/sessions".to_owned()),
        (Method::GET, format!("/users/ada/sessions/{id}")),
        (Method::DELETE, format!("/users/ada/sessions/{id}")),
        (Method::GET, "/flash/pan/holds".to_owned()),
        (Method::PUT, "/flash/pan/pieces".to_owned()),
    ] {
        let answer =
            Answer::to(Visitor::with_cookie(shop, ada.cookie.clone().expect("a cookie")).request(method, &path)).await;
        assert_eq!(answer.status, 401, "{path}");
    }
    assert_eq!(shop.store.counts().requests, before);
}
