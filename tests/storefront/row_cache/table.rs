//! Rows of a D1 table, in workerd, because only workerd has D1. The table is the inventory of the demo shop.

use std::time::Duration;

use edgefront::jobs::EVERY_MINUTE;
use http::Method;
use serde_json::{Value, json};

use crate::support::{SERVICE_KEY, Shop};

const ROW: &str = "carbon-steel-frying-pan-20-cm";

async fn schedule(shop: &Shop, row: &str, every: f64) -> u16 {
    let request = shop.request(Method::PUT, &format!("/_edge/v1/rows/{row}/schedule")).bearer_auth(SERVICE_KEY);
    let body = json!({"every": every}).to_string();
    request.header("content-type", "application/json").body(body).send().await.expect("an answer").status().as_u16()
}

async fn read(shop: &Shop, row: &str) -> (u16, Value) {
    let answer = shop.visit(&format!("/_edge/v1/rows/{row}")).await;
    (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON"))
}

#[tokio::test]
async fn rows_of_a_table_have_all_columns_and_a_cron_refreshes_them() {
    let shop = Shop::workerd(&[("ROWS_TABLE", "inventory"), ("ROW_MEMORY", "0")]).await;
    assert_eq!(schedule(&shop, ROW, 60.0).await, 200);
    let (status, row) = read(&shop, ROW).await;
    assert_eq!((status, &row["id"]), (200, &json!(ROW)));
    let columns: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let price = ["price_cents", "sale_price_cents", "sale_starts_at", "sale_ends_at"];
    assert_eq!(columns, [&["id", "stock"], &price[..], &["updated_at", "sale_pieces", "sale_sold"]].concat());
    assert!(row["stock"].is_u64() && row["price_cents"].is_u64(), "{row}");

    shop.store.raw(&["SET", &format!("inv:{ROW}"), "{\"stock\":-1}"]).await;
    shop.store.raw(&["ZADD", "schedule:", "1", ROW]).await;
    tokio::time::timeout(Duration::from_secs(30), shop.cron(EVERY_MINUTE)).await.expect("a run without due rows ends");
    assert_eq!(read(&shop, ROW).await, (200, row));
}

#[tokio::test]
async fn a_row_that_is_not_in_the_table_is_not_scheduled() {
    let shop = Shop::workerd(&[("ROWS_TABLE", "inventory"), ("ROW_MEMORY", "0")]).await;
    assert_eq!(schedule(&shop, "no-such-product", 5.0).await, 404);
    assert_eq!(shop.store.raw(&["EXISTS", "schedule:", "delay:"]).await, 0);
}

#[tokio::test]
async fn a_missing_table_is_a_failing_source() {
    let shop = Shop::workerd(&[("ROWS_TABLE", "stock_list")]).await;
    assert_eq!(schedule(&shop, ROW, 5.0).await, 200);
    assert_eq!(read(&shop, ROW).await.0, 503);
    shop.logged("no such table").await;
}
