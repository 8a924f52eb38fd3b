//! `/flash`: a call costs one Redis request before the response, and none for a visitor without a session.

use edgefront::{
    orders::flash_sale::{self, ReservationId},
    ports::time::{Clock, Timestamp},
    schema::ids::{OrderId, UserId},
};
use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, log_in, service, with_json};
use crate::support::{Reply, Shop, TestClock, row, scenarios};

scenarios!(&[("ROWS_URL", "{origin}/rows"), ("FLASH_HOLD", "300")];
    a_sale_is_shown_to_everybody,
    a_reservation_is_made_found_again_and_cancelled,
    every_refusal_has_its_own_type,
    a_visitor_who_is_not_signed_in_is_refused_without_redis,
    a_flash_call_costs_one_redis_request,
    an_overdue_row_is_refreshed_after_the_response,
    a_missing_copy_is_loaded,
    a_row_without_a_sale_is_not_found,
    an_operator_sees_who_holds_a_piece,
    the_pieces_of_rows_of_an_address_are_the_shops,
);

fn now() -> Timestamp {
    TestClock::ticking().now()
}

/// Gives the shop one flash sale of `pieces`, of which `sold` are sold. It runs from `from` to `to`, in seconds from
/// now.
fn offer(shop: &Shop, (from, to): (i64, i64), pieces: u64, sold: u64) {
    let now = i64::try_from(now().as_secs()).expect("this century");
    let sale = json!({
        "id": "pan", "sale_starts_at": now + from, "sale_ends_at": now + to, "sale_pieces": pieces, "sale_sold": sold,
        "sale_price_cents": 900, "price_cents": 1200,
    });
    shop.origin.answer(Reply::html(json!([sale, {"id": "mug", "stock": 7}]).to_string()));
}

async fn schedule(shop: &Shop, row: &str) {
    let answer = service(shop, Method::PUT, &format!("/rows/{row}/schedule"), Some(&json!({"every": 5}))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Offers a sale and schedules its row.
async fn open(shop: &Shop, window: (i64, i64), pieces: u64) {
    offer(shop, window, pieces, 0);
    schedule(shop, "pan").await;
}

async fn reserve(visitor: &mut Visitor<'_>) -> Answer {
    visitor.send(visitor.request(Method::POST, "/flash/pan/reservations")).await
}

fn problem(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.json["type"].as_str().unwrap_or_default())
}

async fn a_sale_is_shown_to_everybody(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    let before = now().as_score();
    let answer = Visitor::new(shop).get("/flash/pan").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"));
    assert!(!answer.headers.contains_key("set-cookie"));
    let clock = answer.json["now"].as_f64().expect("seconds");
    assert!((before..=now().as_score()).contains(&clock), "{clock}");
    let mut document = answer.json.clone();
    let (starts, ends) = (document["starts"].as_u64().expect("seconds"), document["ends"].as_u64().expect("seconds"));
    assert_eq!(ends - starts, 3660);
    document.as_object_mut().expect("an object").retain(|name, _| !["now", "starts", "ends"].contains(&name.as_str()));
    assert_eq!(
        document,
        json!({
            "id": "pan", "state": "live", "pieces": 3, "left": 3, "held": 0, "price_cents": 900, "list_cents": 1200,
            "reservation": null, "bought": false,
        })
    );
    for (window, pieces, sold, state) in
        [((60, 120), 3, 0, "upcoming"), ((-60, 60), 3, 3, "sold_out"), ((-60, -1), 3, 0, "ended")]
    {
        offer(shop, window, pieces, sold);
        schedule(shop, "pan").await;
        assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["state"], state);
    }
}

async fn a_reservation_is_made_found_again_and_cancelled(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    let (mut ada, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);

    let first = reserve(&mut ada).await;

    assert_eq!((first.status, first.header("cache-control")), (201, "private, no-store"), "{first:?}");
    let counts = (&first.json["left"], &first.json["held"], &first.json["state"]);
    assert_eq!(counts, (&json!(2), &json!(1), &json!("live")));
    let id = first.json["reservation"]["id"].as_str().expect("an id").to_owned();
    let until = first.json["reservation"]["until"].as_f64().expect("seconds");
    let hold = until - first.json["now"].as_f64().expect("seconds");
    assert!((hold - 300.0).abs() < 0.01, "{hold}");
    let again = reserve(&mut ada).await;
    assert_eq!((again.status, &again.json["reservation"]), (200, &first.json["reservation"]));
    assert_eq!(ada.get("/flash/pan").await.json["reservation"], first.json["reservation"]);
    assert_eq!(bob.get("/flash/pan").await.json["reservation"], Value::Null);
    let path = format!("/flash/pan/reservations/{id}");
    for other in ["x", "1.AAAAAAAAAAAAAAAAAAAAAA", "%ff"] {
        let answer = ada.delete(&format!("/flash/pan/reservations/{other}")).await;
        assert_eq!(problem(&answer), (404, "urn:edgefront:not-found"), "{other}");
    }
    assert_eq!(bob.delete(&path).await.status, 404);

    let answer = ada.delete(&path).await;

    assert_eq!((answer.status, &answer.json), (204, &Value::Null));
    assert_eq!(ada.delete(&path).await.status, 404);
    let found = ada.get("/flash/pan").await.json;
    assert_eq!((&found["left"], &found["held"], &found["reservation"]), (&json!(3), &json!(0), &Value::Null));
}

async fn every_refusal_has_its_own_type(shop: &Shop) {
    let (mut ada, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    for (window, kind) in [((60, 3600), "not-started"), ((-3600, -1), "ended")] {
        open(shop, window, 1).await;
        assert_eq!(problem(&reserve(&mut ada).await), (409, &*format!("urn:edgefront:{kind}")));
    }
    open(shop, (-60, 3600), 1).await;
    let reserved = reserve(&mut ada).await;
    assert_eq!(problem(&reserve(&mut bob).await), (409, "urn:edgefront:sold-out"));
    let id = ReservationId::parse(reserved.json["reservation"]["id"].as_str().expect("an id")).expect("an id");
    let (user, order) = (UserId::parse("ada").expect("a user"), OrderId::parse("order-1").expect("an order"));
    let confirm = flash_sale::confirm_command(shop.store.redis.keys(), &row("pan"), &id, &user, &order);
    shop.store.redis.run::<()>(confirm).await.expect("an answer");
    let answer = reserve(&mut ada).await;
    assert_eq!(problem(&answer), (409, "urn:edgefront:already-bought"));
    assert!(answer.json["detail"].as_str().is_some_and(|detail| detail.contains("one for each")), "{answer:?}");
    let found = ada.get("/flash/pan").await.json;
    assert_eq!((&found["bought"], &found["left"], &found["state"]), (&json!(true), &json!(0), &json!("sold_out")));
}

async fn a_visitor_who_is_not_signed_in_is_refused_without_redis(shop: &Shop) {
    open(shop, (-60, 3600), 1).await;
    let before = shop.store.counts().requests;
    for cookie in [None, Some("__Host-session=forged.mac")] {
        let mut visitor = Visitor::new(shop);
        visitor.cookie = cookie.map(str::to_owned);
        assert_eq!(problem(&reserve(&mut visitor).await), (403, "urn:edgefront:sign-in"), "{cookie:?}");
        let answer = visitor.delete("/flash/pan/reservations/1.AAAAAAAAAAAAAAAAAAAAAA").await;
        assert_eq!(problem(&answer), (403, "urn:edgefront:sign-in"), "{cookie:?}");
    }
    assert_eq!(shop.store.counts().requests, before);
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    assert_eq!(problem(&reserve(&mut guest).await), (403, "urn:edgefront:sign-in"));
    let foreign = shop.request(Method::POST, "/_edge/v1/flash/pan/reservations").header("sec-fetch-site", "cross-site");
    let mut ada = log_in(shop, "ada").await;
    let foreign = foreign.header("cookie", ada.cookie.clone().expect("a cookie"));
    assert_eq!(foreign.send().await.expect("an answer").status(), 403);
    assert_eq!(ada.get("/flash/pan").await.json["reservation"], Value::Null);
}

async fn a_flash_call_costs_one_redis_request(shop: &Shop) {
    open(shop, (-60, 3600), 2).await;
    let mut ada = log_in(shop, "ada").await;
    // The first calls may send the scripts' sources, too.
    let id = reserve(&mut ada).await.json["reservation"]["id"].clone();
    ada.delete(&format!("/flash/pan/reservations/{}", id.as_str().expect("an id"))).await;
    for (visitor, apart) in [(&mut Visitor::new(shop), 0), (&mut ada, shop.store.apart())] {
        assert_eq!(visitor.get("/flash/pan").await.status, 200);
        assert_eq!(shop.blocking_requests().await, 1 + apart);
    }
    for status in [201, 200] {
        let reserved = ada.send(with_json(ada.request(Method::POST, "/flash/pan/reservations"), &json!({}))).await;
        assert_eq!((reserved.status, shop.blocking_requests().await), (status, 1 + shop.store.apart()));
    }
    let id = ada.get("/flash/pan").await.json["reservation"]["id"].clone();
    ada.delete(&format!("/flash/pan/reservations/{}", id.as_str().expect("an id"))).await;
    assert_eq!(shop.blocking_requests().await, 1 + shop.store.apart());
    assert_eq!(shop.store.raw(&["ZCARD", "held:pan"]).await, 0);
}

async fn an_overdue_row_is_refreshed_after_the_response(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    offer(shop, (-60, 3600), 9, 1);
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["pieces"], 3);
    shop.settled().await;
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["pieces"], 3, "the row is not due yet");
    shop.store.raw(&["ZINCRBY", "schedule:", "-20", "pan"]).await;
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["pieces"], 3);
    assert_eq!(shop.blocking_requests().await, 1);
    shop.settled().await;
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["pieces"], 9);
}

async fn a_missing_copy_is_loaded(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    let mut ada = log_in(shop, "ada").await;
    let lose = async || {
        shop.store.raw(&["DEL", "inv:pan"]).await;
        shop.store.raw(&["ZADD", "schedule:", "1000", "pan"]).await;
    };
    lose().await;
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["left"], 3);
    lose().await;
    assert_eq!(reserve(&mut ada).await.status, 201);
    lose().await;
    shop.store.raw(&["SET", "inv:pan", "no JSON"]).await;
    assert_eq!(Visitor::new(shop).get("/flash/pan").await.json["left"], 2);
    lose().await;
    shop.origin.answer(Reply::status(500));
    let answer = Visitor::new(shop).get("/flash/pan").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"));
}

async fn a_row_without_a_sale_is_not_found(shop: &Shop) {
    offer(shop, (-60, 3600), 3, 0);
    let mut ada = log_in(shop, "ada").await;
    schedule(shop, "mug").await;
    for sale in ["pan", "mug", "a%3Ab", "%ff", &"a".repeat(65)] {
        assert_eq!(problem(&ada.get(&format!("/flash/{sale}")).await), (404, "urn:edgefront:not-found"), "{sale}");
        let reserve = ada.send(ada.request(Method::POST, &format!("/flash/{sale}/reservations"))).await;
        assert_eq!(problem(&reserve), (404, "urn:edgefront:not-found"), "{sale}");
    }
    assert_eq!(shop.store.raw(&["KEYS", "flash:*"]).await, json!([]));
}

async fn an_operator_sees_who_holds_a_piece(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    let (mut ada, mut bob) = (log_in(shop, "ada").await, log_in(shop, "bob").await);
    let first = reserve(&mut ada).await;
    reserve(&mut bob).await;
    shop.store.raw(&["HSET", "flash:pan", "sold", "1"]).await;
    let before = shop.store.counts().requests;

    let answer = service(shop, Method::GET, "/flash/pan/holds", None).await;

    assert_eq!(shop.store.counts().requests - before, 1);
    let counts = ["pieces", "sold", "held", "left", "state"].map(|name| answer.json[name].clone());
    assert_eq!(counts, [json!(3), json!(1), json!(2), json!(0), json!("sold_out")], "{answer:?}");
    let users: Vec<_> = answer.json["holds"].as_array().expect("a list").iter().map(|hold| &hold["user"]).collect();
    assert_eq!(users, ["ada", "bob"], "the first to end comes first");
    assert_eq!(answer.json["holds"][0]["until"], first.json["reservation"]["until"]);
    assert_eq!(service(shop, Method::GET, "/flash/mug/holds", None).await.status, 404);
}

async fn the_pieces_of_rows_of_an_address_are_the_shops(shop: &Shop) {
    open(shop, (-60, 3600), 3).await;
    for (body, field) in [
        (json!({"was": 3, "pieces": 0}), "pieces"),
        (json!({"was": 3, "pieces": "5"}), "pieces"),
        (json!({"pieces": 5}), "was"),
    ] {
        let answer = service(shop, Method::PUT, "/flash/pan/pieces", Some(&body)).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{body}: {answer:?}");
    }
    let answer = service(shop, Method::PUT, "/flash/pan/pieces", Some(&json!({"was": 3, "pieces": 5}))).await;
    assert_eq!((answer.status, &answer.json["type"]), (409, &json!("urn:edgefront:conflict")), "{answer:?}");
    assert_eq!(service(shop, Method::PUT, "/flash/x/pieces", Some(&json!({"was": 3, "pieces": 5}))).await.status, 404);
}
