//! `Edge-Reservation`: the origin gets the reservation of the user who pays for a piece of a flash sale.

use std::time::Duration;

use edgefront::ports::time::Clock;
use http::Method;
use serde_json::{Value, json};

use crate::{
    orders::flash_sale::put,
    routes::api::{Visitor, log_in, service},
    support::{Reply, Shop, TestClock, scenarios},
};

scenarios! {
    &[];
    the_origin_gets_the_reservation_and_the_visitor_waits_for_one_request,
    the_origin_gets_no_reservation_of_another_sale_or_user,
    a_checkout_sends_the_cart_too,
    an_expired_reservation_is_not_sent,
    no_client_forges_a_reservation,
    an_order_sells_the_reserved_piece,
    an_order_that_is_reported_later_sells_the_reserved_piece,
    an_order_of_the_last_sale_takes_no_piece_of_the_next,
}

const CHECKOUT: &str = "/flash/pan/checkout";

/// Starts a sale, and reserves a piece for `visitor`.
async fn reserve(shop: &Shop, sale: &str, visitor: &mut Visitor<'_>) -> Value {
    let now = TestClock::ticking().now();
    let row = json!({"sale_starts_at": now.as_secs() - 60, "sale_ends_at": now.as_secs() + 3600, "sale_pieces": 5});
    put(&shop.store, sale, &row, now + Duration::from_hours(1)).await;
    reserve_too(sale, visitor).await
}

/// Reserves a piece of a running sale for `visitor`. A sale that is stored again a second later would be another sale.
async fn reserve_too(sale: &str, visitor: &mut Visitor<'_>) -> Value {
    let answer = visitor.send(visitor.request(Method::POST, &format!("/flash/{sale}/reservations"))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json["reservation"].clone()
}

/// The reservation that the origin gets with the visitor's request; null without one.
async fn told(shop: &Shop, visitor: &Visitor<'_>, method: Method, path: &str) -> Value {
    shop.origin.answer(Reply::html("x").header("cache-control", "no-store"));
    let request = shop.request(method, path).header("cookie", visitor.cookie.clone().unwrap_or_default());
    assert_eq!(request.send().await.expect("an answer").status(), 200);
    serde_json::from_str(shop.origin.last().header("edge-reservation")).unwrap_or_default()
}

async fn the_origin_gets_the_reservation_and_the_visitor_waits_for_one_request(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    assert_eq!(told(shop, &ada, Method::GET, CHECKOUT).await, Value::Null);
    let held = reserve(shop, "pan", &mut ada).await;
    for (method, path) in
        [(Method::GET, CHECKOUT), (Method::POST, CHECKOUT), (Method::GET, "/flash/pan/checkout?step=2")]
    {
        shop.settled().await;
        let expected = json!({"sale": "pan", "id": held["id"], "until": held["until"]});
        assert_eq!(told(shop, &ada, method, path).await, expected, "{path}");
        assert_eq!(shop.blocking_requests().await, 1 + shop.store.apart(), "the session and the piece together");
        assert_eq!(shop.origin.last().header("edge-user"), "ada");
        assert_eq!(shop.origin.last().header("edge-cart"), "{}");
    }
}

async fn the_origin_gets_no_reservation_of_another_sale_or_user(shop: &Shop) {
    let (mut ada, bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    reserve(shop, "pan", &mut ada).await;
    for path in ["/flash/mug/checkout", "/flash/pan", "/flash/pan/checkout/", "/flash/a%3Apan/checkout", "/cart"] {
        assert_eq!(told(shop, &ada, Method::GET, path).await, Value::Null, "{path}");
    }
    assert_eq!(told(shop, &bob, Method::GET, CHECKOUT).await, Value::Null);
    assert_eq!(told(shop, &Visitor::new(shop), Method::GET, CHECKOUT).await, Value::Null);
    let logged_out = Visitor::with_cookie(shop, ada.cookie.clone().expect("a cookie"));
    ada.delete("/session").await;
    assert_eq!(told(shop, &logged_out, Method::GET, CHECKOUT).await, Value::Null);
    assert_eq!(shop.origin.last().header("edge-user"), "");
    // The user can pay for the piece although the copy of the row is missing.
    let ada = log_in(shop, "ada").await;
    shop.store.raw(&["DEL", "inv:pan"]).await;
    assert_eq!(told(shop, &ada, Method::GET, CHECKOUT).await["sale"], "pan");
}

async fn a_checkout_sends_the_cart_too(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    ada.put("/cart/items/mug", &json!({"quantity": 2})).await;
    reserve(shop, "bowl", &mut ada).await;
    // The first call may send the script's source.
    told(shop, &ada, Method::GET, "/flash/bowl/checkout").await;
    shop.settled().await;
    assert_eq!(told(shop, &ada, Method::GET, "/flash/bowl/checkout").await["sale"], "bowl");
    assert_eq!(shop.origin.last().header("edge-cart"), "{\"mug\":2}");
    assert_eq!(shop.blocking_requests().await, 1 + shop.store.apart());
    assert_eq!(told(shop, &Visitor::new(shop), Method::GET, "/flash/bowl/checkout").await, Value::Null);
    assert_eq!(shop.origin.last().header("edge-cart"), "{}");
}

async fn an_expired_reservation_is_not_sent(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    reserve(shop, "pan", &mut ada).await;
    shop.store.raw(&["ZINCRBY", "held:pan", "-119", "ada"]).await;
    assert_eq!(told(shop, &ada, Method::GET, CHECKOUT).await["sale"], "pan");
    shop.store.raw(&["ZINCRBY", "held:pan", "-1", "ada"]).await;
    assert_eq!(told(shop, &ada, Method::GET, CHECKOUT).await, Value::Null);
}

async fn no_client_forges_a_reservation(shop: &Shop) {
    shop.origin.answer(Reply::html("x"));
    let request = shop.get(CHECKOUT).header("edge-reservation", "{\"sale\":\"pan\"}");
    request.send().await.expect("an answer");
    assert_eq!(shop.origin.last().header("edge-reservation"), "");
}

/// The sale of pans as `visitor` sees it: pieces left, pieces held, the visitor's reservation, and an earlier purchase.
async fn sale(visitor: &mut Visitor<'_>) -> [Value; 4] {
    let sale = visitor.get("/flash/pan").await.json;
    ["left", "held", "reservation", "bought"].map(|field| sale[field].clone())
}

fn order(id: &str, held: &Value) -> Value {
    let reservation = json!({"sale": "pan", "id": held["id"]});
    json!({"order_id": id, "items": [{"id": "pan", "quantity": 1}], "reservation": reservation})
}

async fn an_order_sells_the_reserved_piece(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    let held = reserve(shop, "pan", &mut ada).await;
    assert_eq!(sale(&mut ada).await, [json!(4), json!(1), held.clone(), json!(false)]);
    shop.origin.answer(Reply::html("thank you").header("edge-order", order("A-1", &held).to_string()));
    for _ in 0..2 {
        let request = shop.request(Method::POST, CHECKOUT).header("cookie", ada.cookie.clone().unwrap());
        assert_eq!(request.send().await.expect("an answer").status(), 200);
        assert_eq!(sale(&mut ada).await, [json!(4), json!(0), Value::Null, json!(true)]);
    }
}

/// The storefront repeats an old order and names the user's current reservation.
async fn an_order_of_the_last_sale_takes_no_piece_of_the_next(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    let held = reserve(shop, "pan", &mut ada).await;
    let buy = async |order: &Value, cookie: &str| {
        shop.origin.answer(Reply::html("thank you").header("edge-order", order.to_string()));
        let request = shop.request(Method::POST, CHECKOUT).header("cookie", cookie);
        assert_eq!(request.send().await.expect("an answer").status(), 200);
    };
    let cookie = ada.cookie.clone().expect("a cookie");
    buy(&order("A-1", &held), &cookie).await;
    // The next sale begins a second later.
    let now = TestClock::ticking().now();
    let row = json!({"sale_starts_at": now.as_secs() - 30, "sale_ends_at": now.as_secs() + 3600, "sale_pieces": 5});
    put(&shop.store, "pan", &row, now + Duration::from_hours(1)).await;
    let held = reserve_too("pan", &mut ada).await;
    for _ in 0..2 {
        buy(&order("A-1", &held), &cookie).await;
        assert_eq!(sale(&mut ada).await, [json!(4), json!(1), held.clone(), json!(false)]);
    }
    buy(&order("A-2", &held), &cookie).await;
    assert_eq!(sale(&mut ada).await, [json!(4), json!(0), Value::Null, json!(true)]);
}

async fn an_order_that_is_reported_later_sells_the_reserved_piece(shop: &Shop) {
    let (mut ada, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    let (adas, bobs) = (reserve(shop, "pan", &mut ada).await, reserve_too("pan", &mut bob).await);
    let (mut by_user, mut by_token) = (order("A-1", &adas), order("B-1", &bobs));
    let cookie = bob.cookie.clone().unwrap();
    by_user["user"] = json!("ada");
    by_token["token"] = json!(cookie.trim_start_matches("__Host-session=").split('.').next());
    for order in [by_user, by_token] {
        assert_eq!(service(shop, Method::POST, "/orders", Some(&order)).await.status, 204, "{order}");
    }
    for visitor in [&mut ada, &mut bob] {
        assert_eq!(sale(visitor).await, [json!(3), json!(0), Value::Null, json!(true)]);
    }
}
