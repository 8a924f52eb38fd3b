//! An outage of the database or of Redis: cached pages are still served, other requests fail with an error, and a retry has an effect
//! once.

use edgefront_gateway::Fault;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    MUG,
    checkout::{buy, count, stock},
    open,
    person::Person,
};
use crate::{
    page_cache::cache_status,
    support::{SERVICE_KEY, Shop, eventually},
};

/// Renames the tables. Every query that names a missing table fails.
async fn rename(shop: &Shop, from: &str, to: &str) {
    for table in ["products", "inventory"] {
        shop.sql(&format!("ALTER TABLE {from}{table} RENAME TO {to}{table}")).await;
    }
}

async fn row(shop: &Shop) -> (StatusCode, Value) {
    let answer = shop.visit(&format!("/_edge/v1/rows/{MUG}")).await;
    (answer.status(), serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON"))
}

/// Makes the row due and runs the refresh job once. (The cron would retry for a minute.)
async fn refresh(shop: &Shop) {
    shop.store.raw(&["ZADD", "schedule:", "1", MUG]).await;
    let job = shop.request(Method::POST, "/_edge/v1/jobs/refresh-rows").bearer_auth(SERVICE_KEY);
    assert_eq!(job.send().await.expect("an answer").status(), StatusCode::OK);
}

#[tokio::test]
async fn during_a_database_outage_cached_pages_are_served_and_an_order_can_be_retried() {
    let shop = open().await;
    let (guest, product) = (Person::at(&shop), format!("/products/{MUG}"));
    guest.add(MUG, 1).await;
    let pieces = stock(&shop, MUG).await;
    let form = guest.get("/checkout").await;
    eventually("the page is stored", async || cache_status(&shop.visit(&product).await).contains("; hit")).await;
    let schedule = shop.request(Method::PUT, &format!("/_edge/v1/rows/{MUG}/schedule")).bearer_auth(SERVICE_KEY);
    let schedule = schedule.header("content-type", "application/json").body(r#"{"every":600}"#);
    assert_eq!(schedule.send().await.expect("an answer").status(), StatusCode::OK);
    assert_eq!(row(&shop).await.1["stock"], json!(pieces));

    rename(&shop, "", "away_").await;
    assert_eq!(shop.visit(&product).await.status(), StatusCode::OK);
    let unknown = guest.get("/categories/desk").await;
    assert_eq!(unknown.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(unknown.headers.contains_key("retry-after") && !unknown.text.contains("no such table"), "{unknown:?}");
    let refused = buy(&guest, &form).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!(count(&shop, "orders").await, 0);
    refresh(&shop).await;
    let (status, copy) = row(&shop).await;
    assert_eq!((status, &copy["stock"]), (StatusCode::OK, &json!(pieces)), "a failed refresh keeps the cached row");
    shop.logged("no such table").await;

    rename(&shop, "away_", "").await;
    assert_eq!(guest.get("/categories/desk").await.status, StatusCode::OK);
    let bought = buy(&guest, &form).await;
    assert_eq!(bought.status, StatusCode::SEE_OTHER);
    assert_eq!((count(&shop, "orders").await, stock(&shop, MUG).await), (1, pieces - 1));
    refresh(&shop).await;
    assert_eq!(row(&shop).await.1["stock"], json!(pieces - 1), "the next run refreshes the row");
}

#[tokio::test]
async fn during_an_outage_of_redis_a_user_is_not_signed_out() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.sign_up("ada@example.org").await;
    ada.add(MUG, 1).await;
    let order = buy(&ada, &ada.get("/checkout").await).await.location().to_owned();
    // From then on, the address alone does not open it.
    shop.sql("UPDATE orders SET placed_at = placed_at - 3600").await;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    for path in ["/account", &order] {
        assert_eq!(ada.get(path).await.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    let address = [("op", "add"), ("address", "1 Analytical Street"), ("city", "London"), ("country", "UK")];
    assert_eq!(ada.post("/account", &address).await.status, StatusCode::SERVICE_UNAVAILABLE);
    shop.store.gateway.set_fault(None);
}
