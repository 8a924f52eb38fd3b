use edgefront::ports::time::{Clock, Timestamp};
use futures_util::future::{join, join_all};
use http::Method;
use serde_json::{Value, json};

use super::{call, rotate_clocks, sign_in, three};
use crate::{
    routes::api::{Answer, service},
    support::{Reply, Shop, TestClock},
};

const PIECES: usize = 3;
const USERS: usize = 8;

async fn reserve(shop: &Shop, cookie: &str) -> Answer {
    call(shop, cookie, Method::POST, "/flash/pan/reservations", None).await.expect("an answer")
}

async fn sale(shop: &Shop, cookie: &str) -> Value {
    call(shop, cookie, Method::GET, "/flash/pan", None).await.expect("an answer").json
}

/// The clock of the Worker that answers decides whether the sale runs.
#[tokio::test]
async fn a_flash_sale_sells_its_pieces_once_and_within_its_time() {
    let shops = three(&[("ROWS_URL", "{origin}/rows")]).await;
    let now = TestClock::ticking().now().as_secs();
    // It has begun where the clock is ahead, and begins later elsewhere.
    let (starts, ends) = (now + 3, now + 3600);
    let window = Timestamp::from_millis(starts * 1000).as_score()..Timestamp::from_millis(ends * 1000).as_score();
    let row = json!({
        "id": "pan", "sale_starts_at": starts, "sale_ends_at": ends, "sale_pieces": PIECES, "sale_sold": 0,
        "sale_price_cents": 900, "price_cents": 1200,
    });
    shops[0].origin.answer(Reply::html(json!([row]).to_string()));
    let schedule = service(&shops[0], Method::PUT, "/rows/pan/schedule", Some(&json!({"every": 3600}))).await;
    assert_eq!(schedule.status, 200);
    let users: Vec<_> = (0..USERS).map(|number| format!("user-{number}")).collect();
    let cookies = join_all(users.iter().zip(shops.iter().cycle()).map(|(user, shop)| sign_in(shop, user))).await;

    // Every user tries at every location at once.
    let mut held = vec![Vec::new(); USERS];
    while held.iter().flatten().count() < PIECES {
        let tries = cookies.iter().flat_map(|cookie| shops.iter().map(move |shop| (shop, cookie)));
        let answers = join_all(tries.map(async |(shop, cookie)| {
            let before = sale(shop, cookie).await["now"].as_f64();
            (before, reserve(shop, cookie).await)
        }));
        for (number, (before, answer)) in answers.await.into_iter().enumerate() {
            let kind = answer.json["type"].as_str().unwrap_or_default();
            match answer.status {
                201 => {
                    let at = answer.json["now"].as_f64().expect("seconds");
                    assert!(window.contains(&at), "{at}");
                    held[number / 3].push(answer.json["reservation"]["id"].as_str().expect("an id").to_owned());
                }
                200 => {}
                _ if kind.ends_with("not-started") => assert!(before < Some(window.start), "{answer:?}"),
                _ => assert!(kind.ends_with("sold-out"), "{answer:?}"),
            }
        }
    }
    assert!(held.iter().all(|ids| ids.len() <= 1), "one piece per user: {held:?}");
    assert_eq!(held.iter().flatten().count(), PIECES);

    // One holder gives the piece back, at another location than it was taken.
    for round in 0..3 {
        rotate_clocks(&shops, round).await;
        let giver = held.iter().position(|ids| !ids.is_empty()).expect("a holder");
        let path = format!("/flash/pan/reservations/{}", held[giver].remove(0));
        let cancels = shops.iter().map(|shop| call(shop, &cookies[giver], Method::DELETE, &path, None));
        let statuses: Vec<_> =
            join_all(cancels).await.into_iter().map(|answer| answer.expect("an answer").status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        let other = held.iter().rposition(Vec::is_empty).expect("somebody without a piece");
        // Only where the sale has begun.
        let ahead = shops.iter().cycle().nth(4 - round % 3).expect("a location");
        let taken = reserve(ahead, &cookies[other]).await;
        assert_eq!(taken.status, 201, "{taken:?}");
        held[other].push(taken.json["reservation"]["id"].as_str().expect("an id").to_owned());
    }

    // The shop reports each order at two locations at once.
    for (number, ids) in held.iter().enumerate() {
        let Some(id) = ids.first() else { continue };
        let order = json!({
            "order_id": format!("order-{number}"), "items": [{"id": "pan", "quantity": 1}], "user": users[number],
            "reservation": {"sale": "pan", "id": id},
        });
        let report = async |shop| service(shop, Method::POST, "/orders", Some(&order)).await.status;
        assert_eq!(join(report(&shops[0]), report(&shops[number % 2 + 1])).await, (204, 204));
    }
    let store = &shops[0].store;
    assert_eq!(store.raw(&["ZCARD", "held:pan"]).await, 0);
    assert_eq!(store.raw(&["ZSCORE", "bought:", "pan"]).await, PIECES.to_string());
    for shop in &shops {
        for (number, cookie) in cookies.iter().enumerate() {
            let found = sale(shop, cookie).await;
            assert_eq!((&found["left"], &found["held"]), (&json!(0), &json!(0)), "{found}");
            assert_eq!(found["bought"], json!(!held[number].is_empty()), "{found}");
            let refused = reserve(shop, cookie).await;
            assert_eq!(refused.status, 409, "{refused:?}");
        }
    }
    let past = i64::try_from((ends - now) * 1000).expect("an hour");
    shops[1].set_clock(past).await;
    let refused = reserve(&shops[1], &cookies[0]).await;
    assert_eq!(refused.json["type"], "urn:edgefront:ended");
}
