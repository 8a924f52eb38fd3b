//! 500 buyers and 100 pieces, over HTTP, through the gateway to a real server. Each buyer tries twice.

use std::collections::BTreeSet;

use edgefront::{
    orders::flash_sale::{self, ReservationId},
    ports::time::{Clock, Timestamp},
    schema::ids::{OrderId, UserId},
};
use futures_util::{StreamExt, stream};
use http::Method;
use serde_json::{Value, json};

use super::{HOUR, put};
use crate::{
    routes::api::{Answer, log_in},
    support::{Shop, TestClock, row},
};

const BUYERS: usize = 500;
const PIECES: u64 = 100;
/// Concurrent requests.
const CONCURRENCY: usize = 50;

struct Buyer {
    name: String,
    cookie: String,
}

/// A shop with a running sale, and signed-in buyers.
async fn open() -> (Shop, Vec<Buyer>) {
    let shop = Shop::native(&[]).await;
    let now = TestClock::ticking().now();
    let starts = Timestamp::from_millis((now.as_secs() - 60) * 1000);
    let sale =
        json!({"sale_starts_at": starts.as_secs(), "sale_ends_at": (starts + HOUR).as_secs(), "sale_pieces": PIECES});
    put(&shop.store, "pan", &sale, now + HOUR).await;
    let names = (0..BUYERS).map(|number| format!("buyer-{number}"));
    let buyers = stream::iter(names).map(async |name| {
        let cookie = log_in(&shop, &name).await.cookie.expect("a cookie");
        Buyer { name, cookie }
    });
    let buyers = buyers.buffer_unordered(CONCURRENCY).collect().await;
    (shop, buyers)
}

async fn call(shop: &Shop, method: Method, path: &str, buyer: &Buyer) -> Answer {
    let request = shop.request(method, &format!("/_edge/v1/flash/pan{path}")).header("cookie", &buyer.cookie);
    Answer::to(request.header("sec-fetch-site", "same-origin")).await
}

/// Each buyer tries `times` times. Returns the new reservations: buyer and id.
async fn rush<'a>(
    shop: &Shop,
    buyers: impl Iterator<Item = &'a Buyer> + Clone,
    times: usize,
) -> Vec<(&'a Buyer, String)> {
    let tries = (0..times).flat_map(|_| buyers.clone());
    let tries = stream::iter(tries).map(async |buyer| (buyer, call(shop, Method::POST, "/reservations", buyer).await));
    let answers: Vec<_> = tries.buffer_unordered(CONCURRENCY).collect().await;
    let id = |json: &Value| json["reservation"]["id"].as_str().expect("an id").to_owned();
    let got: Vec<_> = answers
        .iter()
        .filter(|(_, answer)| answer.status == 201)
        .map(|(buyer, answer)| (*buyer, id(&answer.json)))
        .collect();
    for (buyer, answer) in &answers {
        match answer.status {
            201 => {}
            200 => assert!(got.iter().any(|(other, held)| buyer.name == other.name && *held == id(&answer.json))),
            _ => assert_eq!((answer.status, &answer.json["type"]), (409, &json!("urn:edgefront:sold-out"))),
        }
    }
    assert_eq!(got.iter().map(|(buyer, _)| &buyer.name).collect::<BTreeSet<_>>().len(), got.len(), "one per user");
    got
}

#[tokio::test]
async fn of_500_buyers_who_try_twice_exactly_100_get_one_of_100_pieces() {
    let (shop, buyers) = open().await;
    // From here on, the server knows the script.
    call(&shop, Method::GET, "", &buyers[0]).await;
    let before = shop.store.counts().requests;

    let got = rush(&shop, buyers.iter(), 2).await;

    assert_eq!(got.len() as u64, PIECES);
    let requests = shop.store.counts().requests - before;
    assert!(requests <= 1_000 * (1 + shop.store.apart()), "more than one request per attempt: {requests}");
    let found = call(&shop, Method::GET, "", &buyers[0]).await.json;
    assert_eq!((&found["state"], &found["left"], &found["held"]), (&json!("sold_out"), &json!(0), &json!(PIECES)));
}

#[tokio::test]
async fn pieces_that_are_not_bought_return_until_all_100_are_sold() {
    let (shop, buyers) = open().await;
    let (mut paid, mut dropouts) = (BTreeSet::new(), BTreeSet::new());
    let mut times = 2;
    while (paid.len() as u64) < PIECES {
        let waiting = buyers.iter().filter(|buyer| !paid.contains(&buyer.name) && !dropouts.contains(&buyer.name));
        let got = rush(&shop, waiting, times).await;
        assert_eq!(got.len() + paid.len(), usize::try_from(PIECES).unwrap(), "every returned piece, and no more");
        times = 1;
        for (number, (buyer, id)) in got.iter().enumerate() {
            match number % 4 {
                0 | 2 => {
                    let (user, order) = (UserId::parse(&buyer.name).unwrap(), format!("order-of-{}", buyer.name));
                    let (id, order) = (ReservationId::parse(id).unwrap(), OrderId::parse(&order).unwrap());
                    let confirm = flash_sale::confirm_command(shop.store.redis.keys(), &row("pan"), &id, &user, &order);
                    shop.store.redis.run::<()>(confirm).await.unwrap();
                    paid.insert(buyer.name.clone());
                }
                1 => {
                    assert_eq!(call(&shop, Method::DELETE, &format!("/reservations/{id}"), buyer).await.status, 204);
                    dropouts.insert(buyer.name.clone());
                }
                _ => {
                    // Expires the reservation and its grace period, before the end that `upkeep` names.
                    shop.store.raw(&["ZINCRBY", "held:pan", "-151", &buyer.name]).await;
                    shop.store.raw(&["HDEL", "flash:pan", "upkeep"]).await;
                    dropouts.insert(buyer.name.clone());
                }
            }
        }
    }
    let found = call(&shop, Method::GET, "", &buyers[0]).await.json;
    assert_eq!((&found["state"], &found["left"], &found["held"]), (&json!("sold_out"), &json!(0), &json!(0)));
    assert_eq!(shop.store.raw(&["HGET", "flash:pan", "sold"]).await, PIECES.to_string());
    let refused = rush(&shop, buyers.iter().filter(|buyer| dropouts.contains(&buyer.name)), 1).await;
    assert_eq!(refused.len(), 0);
}
