//! Flash sales of the demo shop, in workerd with a real D1: one page for every visitor, and no overselling.

use std::collections::BTreeSet;

use edgefront::demo::FLASH_SALES;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    checkout::{buy, stock},
    person::Person,
};
use crate::{
    routes::api::{Answer, Visitor, log_in, service},
    support::Shop,
};

const RUNNING: &str = FLASH_SALES[0];
const UPCOMING: &str = FLASH_SALES[1];

/// Starts the demo shop and schedules the rows of its flash sales.
async fn open() -> Shop {
    let shop = Shop::workerd(&[("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory")]).await;
    for row in FLASH_SALES {
        refresh(&shop, row).await;
    }
    shop
}

/// Refreshes a row in the row cache.
async fn refresh(shop: &Shop, row: &str) {
    let scheduled = service(shop, Method::PUT, &format!("/rows/{row}/schedule"), Some(&json!({"every": 5}))).await;
    assert_eq!(scheduled.status, 200, "{scheduled:?}");
}

async fn sale(shop: &Shop, id: &str) -> Value {
    let answer = Visitor::new(shop).get(&format!("/flash/{id}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json
}

async fn page(shop: &Shop, path: &str) -> (u16, String) {
    let answer = shop.visit(path).await;
    assert!(!answer.headers().contains_key("set-cookie"), "{path}");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test]
async fn one_sale_is_live_and_one_is_upcoming() {
    let shop = open().await;
    let running = sale(&shop, RUNNING).await;
    assert_eq!((&running["state"], &running["pieces"], &running["left"]), (&json!("live"), &json!(25), &json!(25)));
    assert_eq!(sale(&shop, UPCOMING).await["state"], "upcoming");
    let home = page(&shop, "/").await.1;
    for id in FLASH_SALES {
        assert!(home.contains(&format!("href=\"/flash/{id}\"")), "{home}");
        let (status, page) = page(&shop, &format!("/flash/{id}")).await;
        assert_eq!(status, 200);
        assert!(page.contains(&format!("data-flash=\"{id}\"")), "{page}");
    }
    assert_eq!(page(&shop, "/flash/enamel-mug-sage").await.0, 404, "an ordinary sale is not a flash sale");
    assert_eq!(page(&shop, "/flash/no-such").await.0, 404);
}

#[tokio::test]
async fn the_price_of_a_flash_sale_is_only_for_its_own_checkout() {
    let shop = open().await;
    let cards = Answer::to(shop.get(&format!("/products.json?ids={RUNNING}"))).await;
    let card = &cards.json["products"][0];
    assert_eq!((&card["price_cents"], &card["list_cents"]), (&json!(12900), &json!(12900)));
    assert_eq!(sale(&shop, RUNNING).await["price_cents"], 7900);
    assert!(page(&shop, &format!("/flash/{RUNNING}")).await.1.contains("€79.00"));
    assert!(page(&shop, &format!("/products/{RUNNING}")).await.1.contains("€129.00"));
}

#[tokio::test]
async fn cards_of_an_item_in_a_flash_sale_show_a_badge_and_its_price_while_pieces_are_left() {
    let shop = open().await;
    for path in ["/categories/kitchen", "/search?q=casserole", "/search?q=casserole&price=50-100&sale=1"] {
        let page = page(&shop, path).await.1;
        let card = page.split("<li class=\"card\">").find(|card| card.contains(RUNNING)).expect(path);
        assert!(card.contains("<span class=\"tag\">Flash sale</span>") && card.contains("€79.00"), "{path}: {card}");
    }
    shop.sql(&format!("UPDATE inventory SET sale_sold = sale_pieces WHERE id = '{RUNNING}'")).await;
    let page = page(&shop, "/search?q=casserole+sage").await.1;
    assert!(!page.contains("Flash sale") && !page.contains("€79.00"), "{page}");
}

#[tokio::test]
async fn pages_show_the_pieces_that_are_left() {
    let shop = open().await;
    let paths = ["/".to_owned(), format!("/flash/{RUNNING}")];
    for path in &paths {
        assert!(page(&shop, path).await.1.contains(">25</span> available"), "{path}");
    }
    shop.sql(&format!("UPDATE inventory SET sale_sold = 1 WHERE id = '{RUNNING}'")).await;
    for path in &paths {
        let page = page(&shop, &format!("{path}?_=1")).await.1;
        assert!(page.contains(">24</span> available"), "{path}: {page}");
    }
}

#[tokio::test]
async fn a_sales_page_is_cached_like_an_item_page() {
    let shop = open().await;
    let path = format!("/flash/{RUNNING}");
    shop.visit(&path).await;
    shop.settled().await;
    // The first view gives the item a rank, so the second response is stored.
    shop.visit(&path).await;
    shop.settled().await;
    let ada = log_in(&shop, "ada").await;
    let answer = shop.get(&path).header("cookie", ada.cookie.expect("a cookie")).send().await.expect("an answer");
    let status = answer.headers()["cache-status"].to_str().expect("ASCII").to_owned();
    assert!(status.starts_with("edgefront; hit"), "{status}");
}

/// A signed-in visitor with a reservation, at the checkout.
struct Buyer<'a> {
    visitor: Visitor<'a>,
    /// The order id in the form.
    order_id: String,
}

/// Reserves a piece and opens the checkout; None if no piece is left.
async fn reserve<'a>(shop: &'a Shop, user: &str) -> Option<Buyer<'a>> {
    let mut visitor = log_in(shop, user).await;
    let answer = visitor.send(visitor.request(Method::POST, &format!("/flash/{RUNNING}/reservations"))).await;
    if answer.status == 409 {
        return None;
    }
    assert_eq!(answer.status, 201, "{answer:?}");
    let cookie = visitor.cookie.clone().expect("a cookie");
    let checkout = shop.get(&checkout()).header("cookie", cookie).send().await.expect("an answer");
    assert_eq!((checkout.status().as_u16(), &checkout.headers()["cache-control"]), (200, &"no-store".parse().unwrap()));
    let page = checkout.text().await.expect("text");
    let (_, rest) = page.split_once("name=\"order_id\" value=\"").expect("an order id");
    Some(Buyer { visitor, order_id: rest[..32].to_owned() })
}

fn checkout() -> String {
    format!("/flash/{RUNNING}/checkout")
}

impl Buyer<'_> {
    /// Submits the form. Returns status, redirect target and page.
    async fn send(&self, shop: &Shop, fields: &str) -> (u16, String, String) {
        let body = format!("order_id={}&{fields}", self.order_id);
        let request = shop.request(Method::POST, &checkout()).header("origin", &shop.url);
        let request = request.header("cookie", self.visitor.cookie.clone().expect("a cookie"));
        let answer = request.body(body).send().await.expect("an answer");
        let headers = answer.headers();
        assert!(headers.keys().all(|name| !name.as_str().starts_with("edge-")), "{headers:?}");
        let to = headers.get("location").map(|to| to.to_str().expect("ASCII").to_owned()).unwrap_or_default();
        (answer.status().as_u16(), to, answer.text().await.expect("text"))
    }
}

const FORM: &str =
    "price_cents=7900&name=Ada+Lovelace&email=ada%40example.org&address=Here+1&postcode=1&city=London&country=UK";

/// The number of sold pieces in D1, read through a refreshed row.
async fn sold(shop: &Shop) -> Value {
    refresh(shop, RUNNING).await;
    let row = Visitor::new(shop).get(&format!("/rows/{RUNNING}")).await.json;
    assert_eq!(row["stock"].as_i64().zip(row["sale_sold"].as_i64()).map(|(stock, sold)| stock + sold), Some(40));
    row["sale_sold"].clone()
}

#[tokio::test]
async fn a_form_that_is_sent_twice_buys_one_piece() {
    let shop = open().await;
    let ada = reserve(&shop, "ada").await.expect("a piece");
    let (status, order, _) = ada.send(&shop, FORM).await;
    assert_eq!((status, order.starts_with("/orders/")), (303, true), "{order}");
    assert_eq!(ada.send(&shop, FORM).await, (303, order.clone(), String::new()));
    assert_eq!(sold(&shop).await, 1);
    let after = sale(&shop, RUNNING).await;
    assert_eq!((after["left"].as_u64(), after["held"].as_u64()), (Some(24), Some(0)), "{after}");
    let page = shop.get(&order).header("cookie", ada.visitor.cookie.clone().expect("a cookie"));
    let page = page.send().await.expect("an answer").text().await.expect("text");
    assert!(page.contains("€79.00") && page.contains("Ada Lovelace"), "{page}");
    // Even with a second reservation, the database allows one piece per customer.
    let again = Buyer { order_id: "0".repeat(32), ..ada };
    let (status, _, page) = again.send(&shop, FORM).await;
    assert_eq!(status, 409);
    assert!(page.contains("no active reservation") || page.contains("already bought this item"), "{page}");
    assert_eq!(sold(&shop).await, 1);
}

#[tokio::test]
async fn a_purchase_leaves_the_same_item_in_the_cart() {
    let shop = open().await;
    let mut ada = reserve(&shop, "ada").await.expect("a piece");
    ada.visitor.put(&format!("/cart/items/{RUNNING}"), &json!({"quantity": 1})).await;
    // The form is sent twice: the second time without a reservation.
    for _ in 0..2 {
        assert_eq!(ada.send(&shop, FORM).await.0, 303);
        let cart = ada.visitor.get("/cart").await.json;
        assert_eq!(cart["items"], json!([{"id": RUNNING, "quantity": 1}]), "{cart}");
    }
}

/// The user buys in one sale, and reserves a piece of the next before the old form is sent again.
#[tokio::test]
async fn an_order_of_the_last_sale_takes_no_piece_of_the_next() {
    let shop = open().await;
    let ada = reserve(&shop, "ada").await.expect("a piece");
    let (status, order, _) = ada.send(&shop, FORM).await;
    assert_eq!(status, 303);
    shop.sql(&format!(
        "UPDATE inventory SET sale_starts_at = sale_starts_at - 1, sale_sold = 0 WHERE id = '{RUNNING}'"
    ))
    .await;
    shop.store.raw(&["DEL", &format!("inv:{RUNNING}")]).await;
    refresh(&shop, RUNNING).await;
    let again = ada.visitor.request(Method::POST, &format!("/flash/{RUNNING}/reservations"));
    assert_eq!(again.send().await.expect("an answer").status(), 201);
    for _ in 0..2 {
        assert_eq!(ada.send(&shop, FORM).await, (303, order.clone(), String::new()));
        let sale = sale(&shop, RUNNING).await;
        assert_eq!((&sale["left"], &sale["held"]), (&json!(24), &json!(1)), "{sale}");
    }
    let next = Buyer { order_id: "0".repeat(32), ..ada };
    assert_eq!(next.send(&shop, FORM).await.0, 303, "the piece of the next sale can be bought");
    let after = Visitor::new(&shop).get(&format!("/flash/{RUNNING}")).await.json;
    assert_eq!((&after["left"], &after["held"]), (&json!(24), &json!(0)), "{after}");
    // A reservation of a sale that has been replaced buys nothing.
    let bob = reserve(&shop, "bob").await.expect("a piece");
    shop.sql(&format!("UPDATE inventory SET sale_starts_at = sale_starts_at - 1 WHERE id = '{RUNNING}'")).await;
    let (status, _, page) = bob.send(&shop, FORM).await;
    assert_eq!((status, page.contains("no active reservation")), (409, true), "{page}");
}

#[tokio::test]
async fn a_rejected_form_shows_its_problem_and_keeps_its_values() {
    let shop = open().await;
    let ada = reserve(&shop, "ada").await.expect("a piece");
    let (status, _, page) = ada
        .send(&shop, "price_cents=7900&name=Ada+Lovelace&email=ada&address=&postcode=1&city=London&country=UK")
        .await;
    assert_eq!((status, page.matches("aria-invalid").count()), (422, 2), "{page}");
    assert!(page.contains("value=\"Ada Lovelace\"") && page.contains(&ada.order_id), "{page}");
    let (status, _, page) = ada.send(&shop, &FORM.replace("7900", "100")).await;
    assert_eq!((status, page.contains("The price has changed")), (409, true), "{page}");
    shop.store.raw(&["ZINCRBY", &format!("held:{RUNNING}"), "-500", "ada"]).await;
    let (status, _, page) = ada.send(&shop, FORM).await;
    assert_eq!((status, page.contains("no active reservation")), (409, true), "{page}");
    assert!(page.contains("value=\"Ada Lovelace\""), "{page}");
    assert_eq!(sold(&shop).await, 0);
    let foreign = shop.request(Method::POST, &checkout()).header("sec-fetch-site", "cross-site").body(FORM);
    assert_eq!(foreign.send().await.expect("an answer").status(), 403);
}

#[tokio::test]
async fn without_a_reservation_the_checkout_redirects_to_the_sale() {
    let shop = open().await;
    let ada = log_in(&shop, "ada").await.cookie.expect("a cookie");
    for cookie in ["", &ada] {
        let answer = shop.get(&checkout()).header("cookie", cookie).send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["location"].as_bytes()),
            (303, format!("/flash/{RUNNING}").as_bytes())
        );
    }
    assert_eq!(page(&shop, "/flash/enamel-mug-sage/checkout").await.0, 404);
}

#[tokio::test]
async fn the_header_of_the_checkout_shows_name_and_cart() {
    let shop = open().await;
    let mut ada = reserve(&shop, "ada").await.expect("a piece").visitor;
    ada.put("/cart/items/enamel-mug-sage", &json!({"quantity": 2})).await;
    let answer = shop.get(&checkout()).header("cookie", ada.cookie.expect("a cookie")).send().await.expect("an answer");
    let page = answer.text().await.expect("text");
    assert!(page.contains("aria-label=\"Account: ada\"") && page.contains("data-cart-count>2</span>"), "{page}");
}

#[tokio::test]
async fn many_buyers_buy_exactly_all_pieces() {
    let shop = open().await;
    let (mut orders, mut round) = (BTreeSet::new(), 0);
    // In each round of 40 buyers, every third lets the reservation expire; later buyers get these pieces.
    while orders.len() < 25 {
        round += 1;
        let tries = stream::iter(0..40).map(async |number| {
            let user = format!("buyer-{round}-{number}");
            let buyer = reserve(&shop, &user).await?;
            if number % 3 == 0 {
                shop.store.raw(&["ZINCRBY", &format!("held:{RUNNING}"), "-500", &user]).await;
                // It names the end of the first hold.
                shop.store.raw(&["HDEL", &format!("flash:{RUNNING}"), "upkeep"]).await;
                return None;
            }
            let (status, order, page) = buyer.send(&shop, FORM).await;
            assert_eq!(status, 303, "{page}");
            Some(order)
        });
        orders.extend(tries.buffer_unordered(8).filter_map(async |order| order).collect::<Vec<_>>().await);
        assert!(round < 5, "{} of 25 are sold", orders.len());
    }
    assert_eq!(orders.len(), 25);
    assert_eq!(sold(&shop).await, 25);
    let sale = sale(&shop, RUNNING).await;
    assert_eq!((&sale["state"], &sale["left"]), (&json!("sold_out"), &json!(0)));
    assert!(reserve(&shop, "late").await.is_none());
}

#[tokio::test]
async fn an_operator_adds_pieces() {
    let shop = open().await;
    let path = format!("/flash/{RUNNING}/pieces");
    let change = async |was: u64, pieces: u64| {
        service(&shop, Method::PUT, &path, Some(&json!({"was": was, "pieces": pieces}))).await
    };

    let answer = change(25, 30).await;

    assert_eq!(
        (answer.status, &answer.json["pieces"], &answer.json["left"]),
        (200, &json!(30), &json!(30)),
        "{answer:?}"
    );
    assert_eq!(sale(&shop, RUNNING).await["pieces"], 30);
    assert_eq!(change(25, 30).await.json["pieces"], 30, "a repetition changes nothing");
    assert_eq!(change(25, 40).await.status, 409, "another operator's change is not overwritten");
    shop.sql(&format!("UPDATE inventory SET sale_sold = 20 WHERE id = '{RUNNING}'")).await;
    assert_eq!(change(30, 19).await.status, 409, "20 pieces are sold");
    assert_eq!(change(30, 25).await.json["pieces"], 25);
}

#[tokio::test]
async fn pieces_that_are_still_held_are_not_sold_after_the_end_of_the_sale() {
    let shop = Shop::workerd(&[("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("FLASH_HOLD", "600")]).await;
    let guest = Person::at(&shop);
    // 25 of 40 pieces are for the sale. A reservation of its last second ends after 600 s, and the piece 30 s later.
    for (seconds, status, left) in [(610, StatusCode::CONFLICT, 40), (640, StatusCode::SEE_OTHER, 20)] {
        let end = async |seconds: u32| {
            shop.sql(&format!(
                "UPDATE inventory SET sale_starts_at = 1, sale_ends_at = unixepoch() - {seconds} WHERE id = '{RUNNING}'"
            ))
            .await;
        };
        end(1_000).await;
        if left == 40 {
            guest.add(RUNNING, 20).await;
        }
        let form = guest.get("/checkout").await;
        end(seconds).await;
        assert_eq!(buy(&guest, &form).await.status, status, "{seconds} s after the end");
        assert_eq!(stock(&shop, RUNNING).await, left);
    }
}
