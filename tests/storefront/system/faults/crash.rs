//! Redis is killed again and again (SIGKILL) while customers sign in, reserve pieces of a flash sale, and buy, in workerd
//! with a real D1. Redis has an append-only file that it writes before each reply (`appendfsync always`).

use std::{cell::Cell, env, time::Duration};

use edgefront::demo::FLASH_SALES;
use futures_util::{
    StreamExt,
    future::{LocalBoxFuture, join},
    stream,
};
use http::Method;
use serde_json::{Value, json};

use super::{OwnServer, connected};
use crate::{
    demo::person::{Page, Person},
    routes::api::{Answer, Visitor, service, with_json},
    support::{SERVICE_KEY, Shop, Store, eventually},
};

const SALE: &str = FLASH_SALES[0];
/// Pieces of the sale, and customers who try to get one.
const PIECES: u64 = 25;
const CUSTOMERS: usize = 32;
/// Guests who buy a mug each.
const GUESTS: usize = 12;
const MUG: &str = "enamel-mug-sage";
/// The variable for more crashes.
const CRASHES: &str = "EDGEFRONT_CRASHES";

/// Everything that the shop has accepted.
#[derive(Default)]
struct Accepted {
    /// User and cookie of each login.
    logins: Vec<(String, String)>,
    /// The address of each order.
    orders: Vec<String>,
}

/// Repeats a call until its answer is not 503.
async fn insist<T>(mut call: impl AsyncFnMut() -> T, status: impl Fn(&T) -> u16) -> T {
    let mut last = None;
    eventually("the shop answers", async || {
        let answer = call().await;
        let is_answered = status(&answer) != 503;
        last = Some(answer);
        is_answered
    })
    .await;
    last.expect("an answer")
}

async fn sign_in(shop: &Shop, user: &str) -> String {
    let login = async || {
        let request = shop.request(Method::POST, "/_edge/v1/sessions").bearer_auth(SERVICE_KEY);
        let request = with_json(request, &json!({"user": user})).header("idempotency-key", user);
        Answer::to(request).await
    };
    let answer = insist(login, |answer| answer.status).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.cookie().expect("a cookie")
}

/// A customer signs in, reserves a piece if one is left, and buys it.
async fn reserve_and_buy(shop: &Shop, user: String, progress: &Cell<usize>) -> Accepted {
    let cookie = sign_in(shop, &user).await;
    let mut accepted = Accepted { logins: vec![(user, cookie.clone())], orders: Vec::new() };
    progress.set(progress.get() + 1);
    let reserve = async || {
        let path = format!("/flash/{SALE}/reservations");
        let mut visitor = Visitor::with_cookie(shop, &cookie);
        visitor.send(visitor.request(Method::POST, &path)).await
    };
    let reserved = insist(reserve, |answer| answer.status).await;
    progress.set(progress.get() + 1);
    if reserved.status == 409 {
        assert_eq!(reserved.json["type"], "urn:edgefront:sold-out");
        return accepted;
    }
    assert!(matches!(reserved.status, 200 | 201), "{reserved:?}");
    let (person, checkout) = (Person::with_cookie(shop, &cookie), format!("/flash/{SALE}/checkout"));
    let form = insist(async || person.get(&checkout).await, status).await;
    // The checkout redirects a customer without a reservation to the sale.
    assert_eq!(form.status, 200, "the reservation is lost: {form:?}");
    let order_id = form.field("order_id");
    let fields = [("order_id", &*order_id), ("price_cents", "7900"), ("name", "Ada"), ("email", "ada@example.org")];
    let fields =
        [&fields[..], &[("address", "1 Analytical Street"), ("postcode", "W1"), ("city", "London"), ("country", "UK")]]
            .concat();
    accepted.orders.push(placed(&insist(async || person.post(&checkout, &fields).await, status).await));
    progress.set(progress.get() + 1);
    accepted
}

/// A guest puts a mug into the cart and buys it.
async fn fill_and_buy(shop: &Shop, progress: &Cell<usize>) -> Accepted {
    let guest = Person::at(shop);
    let item = [("op", "set"), ("id", MUG), ("quantity", "1")];
    let added = insist(async || guest.post("/cart", &item).await, status).await;
    assert_eq!(added.status, 303, "{added:?}");
    let form = insist(async || guest.get("/checkout").await, status).await;
    assert!(form.says("name=\"quote\""), "the cart is lost: {form:?}");
    let order = insist(async || crate::demo::checkout::buy(&guest, &form).await, status).await;
    progress.set(progress.get() + 1);
    Accepted { logins: Vec::new(), orders: vec![placed(&order)] }
}

fn status(page: &Page) -> u16 {
    page.status.as_u16()
}

fn placed(page: &Page) -> String {
    assert!(page.status == 303 && page.location().starts_with("/orders/"), "{page:?}");
    page.location().to_owned()
}

async fn number(shop: &Shop, sql: &str) -> u64 {
    shop.sql(&format!("SELECT ({sql}) AS n")).await[0]["n"].as_u64().expect("a number")
}

#[tokio::test]
async fn accepted_writes_survive_a_killed_redis() {
    let crashes: usize = env::var(CRASHES).map_or(4, |count| count.parse().expect("a number"));
    let mut server = OwnServer::start();
    let store = Store::on(&server.unused_database()).await;
    let variables = [("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("FLASH_HOLD", "3600")];
    let shop = Shop::workerd_on(store, &variables).await;
    let path = format!("/rows/{SALE}/schedule");
    assert_eq!(service(&shop, Method::PUT, &path, Some(&json!({"every": 5}))).await.status, 200);
    let stock = |item: &str| format!("SELECT stock FROM inventory WHERE id = '{item}'");
    let (mugs, pieces) = (number(&shop, &stock(MUG)).await, number(&shop, &stock(SALE)).await);

    let progress = Cell::new(0);
    let customers = (0..CUSTOMERS).map(|number| {
        let (shop, progress) = (&shop, &progress);
        Box::pin(reserve_and_buy(shop, format!("user-{number}"), progress)) as LocalBoxFuture<Accepted>
    });
    let guests = (0..GUESTS).map(|_| Box::pin(fill_and_buy(&shop, &progress)) as _);
    // Customers and guests come in turn.
    let work = stream::iter(guests.chain(customers)).buffer_unordered(10).collect::<Vec<Accepted>>();
    let kill = async {
        for crash in 1..=crashes {
            let reached = crash * (GUESTS + 2 * CUSTOMERS) / (crashes + 1);
            eventually("customers buy", async || progress.get() >= reached).await;
            server.0.crash().expect("the server runs");
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.0.start_again().expect("the server again");
        }
    };
    let (accepted, ()) = join(work, kill).await;
    connected(&shop.store).await;
    shop.settled().await;

    for (user, cookie) in accepted.iter().flat_map(|accepted| &accepted.logins) {
        let session = Visitor::with_cookie(&shop, cookie).get("/session").await;
        assert_eq!(session.json["user"], **user, "an accepted login holds");
    }
    let orders: Vec<_> = accepted.iter().flat_map(|accepted| &accepted.orders).collect();
    assert_eq!(orders.len() as u64, PIECES + GUESTS as u64, "all pieces are sold, and a mug to each guest");
    for order in &orders {
        let id = order.trim_start_matches("/orders/");
        assert_eq!(
            number(&shop, &format!("SELECT count(*) FROM order_lines WHERE order_id = '{id}'")).await,
            1,
            "{id}"
        );
    }
    assert_eq!(number(&shop, "SELECT count(*) FROM orders").await, orders.len() as u64, "no other order");
    assert_eq!(mugs - number(&shop, &stock(MUG)).await, GUESTS as u64);
    assert_eq!(pieces - number(&shop, &stock(SALE)).await, PIECES);
    assert_eq!(number(&shop, "SELECT count(DISTINCT user) FROM flash_purchases").await, PIECES, "one for each user");

    assert_eq!(service(&shop, Method::PUT, &path, Some(&json!({"every": 5}))).await.status, 200);
    let sale: Value = Visitor::new(&shop).get(&format!("/flash/{SALE}")).await.json;
    assert_eq!((&sale["left"], &sale["state"]), (&json!(0), &json!("sold_out")), "{sale}");
}
