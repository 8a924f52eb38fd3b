//! `/cart`: a call costs one Redis request before the response, and each response holds the whole cart.

use http::Method;
use serde_json::{Value, json};

use super::{Visitor, service, with_json};
use crate::support::{Shop, scenarios};

scenarios!(&[("CART_MAX_LINES", "3"), ("CART_MAX_QUANTITY", "10")];
    the_first_item_starts_a_guests_cart,
    a_quantity_replaces_the_old_one_and_0_or_less_removes_the_item,
    adding_stops_at_the_limits_of_a_cart,
    a_retried_add_counts_once,
    an_item_may_be_named_by_an_integer,
    an_unchanged_cart_is_answered_304,
    an_invalid_item_or_quantity_is_refused_and_the_cart_stays,
    a_cart_call_costs_one_redis_request,
    a_forged_cookie_has_no_cart_and_costs_no_redis_request,
);

fn cart(lines: &[(&str, u32)]) -> Value {
    let items: Vec<_> = lines.iter().map(|(id, quantity)| json!({"id": id, "quantity": quantity})).collect();
    let quantity: u32 = lines.iter().map(|(_, quantity)| quantity).sum();
    json!({"items": items, "lines": lines.len(), "quantity": quantity})
}

async fn the_first_item_starts_a_guests_cart(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    let answer = guest.get("/cart").await;
    assert_eq!((answer.status, &answer.json, answer.header("set-cookie")), (200, &cart(&[]), ""));
    assert_eq!(answer.header("cache-control"), "private, no-store");

    let answer = guest.post("/cart/items", &json!({"id": "mug", "quantity": 2})).await;

    assert_eq!((answer.status, &answer.json), (200, &cart(&[("mug", 2)])));
    assert_eq!(answer.header("cache-control"), "private, no-store");
    let set_cookie = answer.header("set-cookie");
    assert!(set_cookie.starts_with("__Host-session="), "{set_cookie}");
    for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(set_cookie.contains(attribute), "{set_cookie}");
    }
    assert_eq!(guest.get("/cart").await.json, cart(&[("mug", 2)]));
    assert_eq!(guest.post("/cart/items", &json!({"id": "cup", "quantity": 1})).await.header("set-cookie"), "");
    assert_eq!(Visitor::new(shop).get("/cart").await.json, cart(&[]));
}

async fn a_quantity_replaces_the_old_one_and_0_or_less_removes_the_item(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    for (quantity, left) in [(json!(3), 3), (json!(1), 1), (json!(0), 0), (json!(2.0), 2), (json!(-1), 0)] {
        let answer = guest.put("/cart/items/mug", &json!({"quantity": quantity})).await;
        let lines = [("mug", left)];
        assert_eq!((answer.status, answer.json), (200, cart(if left == 0 { &[] } else { &lines })));
    }
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    guest.put("/cart/items/cup", &json!({"quantity": 2})).await;
    assert_eq!(guest.delete("/cart/items/mug").await.json, cart(&[("cup", 2)]));
    assert_eq!(guest.delete("/cart/items/never-there").await.json, cart(&[("cup", 2)]));
    assert_eq!(guest.delete("/cart").await.json, cart(&[]));
    assert_eq!(guest.get("/cart").await.json, cart(&[]));
}

async fn adding_stops_at_the_limits_of_a_cart(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    for held in [4, 8, 10, 10] {
        let answer = guest.post("/cart/items", &json!({"id": "mug", "quantity": 4})).await;
        assert_eq!(answer.json, cart(&[("mug", held)]));
    }
    guest.put("/cart/items/cup", &json!({"quantity": 1})).await;
    guest.put("/cart/items/bowl", &json!({"quantity": 1})).await;

    let answer = guest.put("/cart/items/plate", &json!({"quantity": 1})).await;

    assert_eq!((answer.status, &answer.json["type"]), (409, &json!("urn:edgefront:cart-full")));
    assert_eq!(guest.get("/cart").await.json, cart(&[("bowl", 1), ("cup", 1), ("mug", 10)]));
}

async fn a_retried_add_counts_once(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/cup", &json!({"quantity": 1})).await;
    let add = |guest: &Visitor<'_>, key: &str, quantity: u32| {
        let request = guest.request(Method::POST, "/cart/items").header("idempotency-key", key);
        with_json(request, &json!({"id": "mug", "quantity": quantity}))
    };
    for _ in 0..3 {
        let answer = guest.send(add(&guest, "first", 2)).await;
        assert_eq!((answer.status, answer.json), (200, cart(&[("cup", 1), ("mug", 2)])));
    }
    assert_eq!(guest.send(add(&guest, "second", 2)).await.json, cart(&[("cup", 1), ("mug", 4)]));

    let answer = guest.send(add(&guest, "first", 3)).await;

    assert_eq!((answer.status, &answer.json["type"]), (409, &json!("urn:edgefront:key-reused")));
    for wrong in ["", &"k".repeat(256), "a b"] {
        let answer = guest.send(add(&guest, wrong, 1)).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("Idempotency-Key")), "{wrong}");
    }
    assert_eq!(guest.get("/cart").await.json, cart(&[("cup", 1), ("mug", 4)]));
}

async fn an_item_may_be_named_by_an_integer(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.post("/cart/items", &json!({"id": 42, "quantity": 1})).await;
    guest.post("/cart/items", &json!({"id": "42", "quantity": 1})).await;
    assert_eq!(guest.put("/cart/items/7", &json!({"quantity": 1})).await.json, cart(&[("42", 2), ("7", 1)]));
    for id in [json!(4.5), json!(1e30), json!(null)] {
        let answer = guest.post("/cart/items", &json!({"id": id, "quantity": 1})).await;
        let detail = "id must be a string or an integer of at most 64 bits";
        assert_eq!((answer.status, &answer.json["field"], &answer.json["detail"]), (422, &json!("id"), &json!(detail)));
    }
    let token = guest.cookie.clone().expect("a cookie");
    let token = token.trim_start_matches("__Host-session=").split('.').next().expect("a token").to_owned();
    let order = json!({"order_id": 1001, "items": [{"id": 42, "quantity": 2}], "token": token});
    for _ in ["reported", "repeated"] {
        assert_eq!(service(shop, Method::POST, "/orders", Some(&order)).await.status, 204);
    }
    assert_eq!(guest.get("/cart").await.json, cart(&[("7", 1)]));
    // With more than one shard, the order has a second key beside those of all orders.
    let keys = 1 + u64::from(shop.store.shards() > 1);
    assert_eq!(shop.store.raw(&["EXISTS", "order:1001"]).await, keys);
    assert_eq!(guest.post("/views", &json!({"item": 42})).await.status, 202);
    let purged = service(shop, Method::POST, "/purge", Some(&json!({"items": [42]}))).await;
    assert_eq!((purged.status, &purged.json["purged"]), (200, &json!(1)));
}

async fn an_unchanged_cart_is_answered_304(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    let written = guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let tag = written.header("etag");
    assert!(tag.starts_with('"'), "{tag}");

    let answer = guest.send(guest.request(Method::GET, "/cart").header("if-none-match", tag)).await;

    assert_eq!((answer.status, answer.header("etag"), &answer.json), (304, tag, &Value::Null));
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let answer = guest.send(guest.request(Method::GET, "/cart").header("if-none-match", tag)).await;
    assert_eq!((answer.status, answer.json), (200, cart(&[("mug", 2)])));
}

async fn an_invalid_item_or_quantity_is_refused_and_the_cart_stays(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let item = "must be 1 to 64 characters of A-Z a-z 0-9 - . _ ~, and not . or ..";
    for (quantity, rule) in [
        (json!(1.5), "quantity must be a whole number"),
        (json!("2"), "quantity must be a whole number"),
        (json!(null), "quantity must be a whole number"),
        (json!([2]), "quantity must be a whole number"),
        (json!(11), "quantity must be at most 10"),
        (json!(u64::MAX), "quantity must be at most 10"),
    ] {
        for answer in [
            guest.put("/cart/items/mug", &json!({"quantity": quantity})).await,
            guest.post("/cart/items", &json!({"id": "mug", "quantity": quantity})).await,
        ] {
            assert_eq!((answer.status, &answer.json["field"]), (422, &json!("quantity")), "{quantity}");
            assert_eq!(answer.json["detail"], rule, "{quantity}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
    }
    for quantity in [0, -1] {
        let answer = guest.post("/cart/items", &json!({"id": "mug", "quantity": quantity})).await;
        assert_eq!((answer.status, &answer.json["detail"]), (422, &json!("quantity must be at least 1")));
    }
    for id in ["", "a:b", "a/b", "a\0b", "ü", &"a".repeat(65)] {
        let answer = guest.post("/cart/items", &json!({"id": id, "quantity": 1})).await;
        assert_eq!((answer.status, &answer.json["detail"]), (422, &json!(format!("id {item}"))), "{id:?}");
    }
    for path in ["", "a%3Ab", "a%2Fb", "a%00", "%ff", "%", &"a".repeat(65)] {
        let answer = guest.put(&format!("/cart/items/{path}"), &json!({"quantity": 1})).await;
        assert_eq!((answer.status, &answer.json["detail"]), (422, &json!(format!("item {item}"))), "{path}");
        assert_eq!(guest.delete(&format!("/cart/items/{path}")).await.status, 422, "{path}");
    }
    assert_eq!(guest.get("/cart").await.json, cart(&[("mug", 2)]));
}

async fn a_cart_call_costs_one_redis_request(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    // The first call sends the script's source, which takes another request.
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let mug = json!({"id": "mug", "quantity": 1});
    for (method, path, body) in [
        (Method::POST, "/cart/items", Some(&mug)),
        (Method::PUT, "/cart/items/mug", Some(&json!({"quantity": 2}))),
        (Method::GET, "/cart", None),
        (Method::DELETE, "/cart/items/mug", None),
        (Method::DELETE, "/cart", None),
    ] {
        let mut request = guest.request(method.clone(), path);
        if let Some(body) = body {
            request = with_json(request, body);
        }
        let before = shop.store.counts().requests;
        assert_eq!(guest.send(request).await.status, 200, "{method} {path}");
        assert_eq!(shop.store.counts().requests - before, 1, "{method} {path}");
    }
    let before = shop.store.counts().requests;
    Visitor::new(shop).post("/cart/items", &mug).await;
    assert_eq!(shop.store.counts().requests - before, 1, "the first item of a guest");
}

async fn a_forged_cookie_has_no_cart_and_costs_no_redis_request(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let good = guest.cookie.expect("a cookie");
    let (token, mac) = good.strip_prefix("__Host-session=").expect("our cookie").split_once('.').expect("a mac");
    let before = shop.store.counts().requests;
    for forged in [
        format!("__Host-session={token}"),
        format!("__Host-session={token}."),
        format!("__Host-session={token}.{}", &mac[1..]),
        format!("__Host-session={token}.{}", "A".repeat(43)),
        format!("__Host-session={}.{mac}", "A".repeat(28)),
        format!("__Host-session=.{mac}"),
        "__Host-session=".to_owned(),
        format!("__Host-session={}", "A".repeat(6_000)),
    ] {
        let mut thief = Visitor::with_cookie(shop, forged.clone());
        assert_eq!(thief.get("/cart").await.json, cart(&[]), "{forged}");
        assert_eq!(thief.delete("/cart/items/mug").await.json, cart(&[]), "{forged}");
        assert_eq!(thief.delete("/cart").await.json, cart(&[]), "{forged}");
    }
    assert_eq!(shop.store.counts().requests, before);
    assert_eq!(Visitor::with_cookie(shop, good).get("/cart").await.json, cart(&[("mug", 1)]));
}
