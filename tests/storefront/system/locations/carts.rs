use std::cell::Cell;

use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::{join, join_all};
use http::Method;
use serde_json::json;

use super::{call, sign_in, three};
use crate::support::eventually;

const ITEMS: [&str; 4] = ["bag", "cup", "mug", "pan"];
/// Adds of each item to each cart.
const ADDS: usize = 6;
const USERS: usize = 3;

/// A call that gets no answer, or 503, is repeated with its key at the next location.
#[tokio::test]
async fn every_accepted_add_counts_once_although_a_location_is_killed() {
    let shops = three(&[]).await;
    let cookies =
        join_all((0..USERS).map(async |number| sign_in(&shops[number], &format!("user-{number}")).await)).await;
    let store = &shops[0].store;
    // Redis executes these requests, and no location gets the replies.
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Every(3));
    let (received, repeated) = (store.gateway.received(), Cell::new(0));
    let add = async |cookie: &str, item: &str, number: usize| {
        let key = format!("{item}-{number}");
        let body = json!({"id": item, "quantity": 1});
        for shop in shops.iter().cycle().skip(number).take(12) {
            let request = crate::routes::api::Visitor::with_cookie(shop, cookie).request(Method::POST, "/cart/items");
            let request = crate::routes::api::with_json(request, &body).header("idempotency-key", &key);
            match request.send().await.map(|answer| answer.status().as_u16()) {
                Ok(200) => return,
                Ok(503) | Err(_) => repeated.set(repeated.get() + 1),
                Ok(status) => panic!("{status}"),
            }
        }
        panic!("no location accepts {key}");
    };
    let adds = cookies.iter().flat_map(|cookie| {
        let add = &add;
        ITEMS.iter().flat_map(move |item| (0..ADDS).map(move |number| add(cookie, item, number)))
    });
    let kill = async {
        eventually("every location has asked Redis", async || store.gateway.received() >= received + 3).await;
        shops[2].kill().await;
    };
    join(join_all(adds), kill).await;
    store.gateway.set_fault(None);
    assert!(repeated.get() > 0);
    for cookie in &cookies {
        let carts = join_all(shops[..2].iter().map(|shop| call(shop, cookie, Method::GET, "/cart", None))).await;
        let expected: Vec<_> = ITEMS.iter().map(|item| json!({"id": item, "quantity": ADDS})).collect();
        for cart in carts {
            assert_eq!(cart.expect("an answer").json["items"], json!(expected));
        }
    }
}
