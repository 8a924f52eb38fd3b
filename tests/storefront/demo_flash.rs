//! The demo shop's flash sales, in workerd with a real D1: the same page for everybody, and pieces that D1 counts.

use edgefront::demo::FLASH_SALES;
use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Visitor, log_in, service},
    support::Shop,
};

const RUNNING: &str = FLASH_SALES[0];
const UPCOMING: &str = FLASH_SALES[1];

/// The demo shop, with its flash sales scheduled.
async fn open() -> Shop {
    let shop = Shop::workerd(&[("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory")]).await;
    for row in FLASH_SALES {
        refresh(&shop, row).await;
    }
    shop
}

/// Has a row read anew.
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
async fn one_sale_runs_and_one_is_to_come() {
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
    assert_eq!(page(&shop, "/flash/enamel-mug-sage").await.0, 404, "an ordinary sale is none");
    assert_eq!(page(&shop, "/flash/no-such").await.0, 404);
}

#[tokio::test]
async fn the_price_of_a_flash_sale_is_for_its_own_checkout_only() {
    let shop = open().await;
    let cards = shop.visit(&format!("/products.json?ids={RUNNING}")).await;
    let card = &Answer::read(cards).await.json["products"][0];
    assert_eq!((&card["price_cents"], &card["list_cents"]), (&json!(12900), &json!(12900)));
    assert_eq!(sale(&shop, RUNNING).await["price_cents"], 7900);
    assert!(page(&shop, &format!("/flash/{RUNNING}")).await.1.contains("€79.00"));
    assert!(page(&shop, &format!("/products/{RUNNING}")).await.1.contains("€129.00"));
}

#[tokio::test]
async fn the_page_of_a_sale_is_cached_like_an_items() {
    let shop = open().await;
    let path = format!("/flash/{RUNNING}");
    shop.visit(&path).await;
    shop.settled().await;
    // Viewed, so it ranks, so it is stored.
    shop.visit(&path).await;
    shop.settled().await;
    let ada = log_in(&shop, "ada").await;
    let answer = shop.get(&path).header("cookie", ada.cookie.expect("a cookie")).send().await.expect("an answer");
    let status = answer.headers()["cache-status"].to_str().expect("ASCII").to_owned();
    assert!(status.starts_with("edgefront; hit"), "{status}");
}
