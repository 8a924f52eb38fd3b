//! The page cache as its clients see it: responses, requests to the origin, and data in Redis.

mod admission;
mod background_notes;
mod bound;
mod cookies;
mod esi;
mod failures;
mod holes;
mod items;
mod late_renders;
mod lengths;
mod location;
mod memory;
mod normalized_accept;
mod normalized_headers;
mod one_client;
mod purge;
mod refusals;
pub mod rfc9111;
mod served;
mod session_ids;
mod shared_paths;
mod stampede;
mod streams;
mod varied_headers;
mod waits;

use http::Method;
use serde_json::json;

use crate::{
    routes::api::service,
    support::{self, Asked, Shop},
};

/// Makes `item` the most viewed item.
pub async fn make_popular(shop: &Shop, item: &str) {
    shop.store.raw(&["ZADD", "viewed:", "-1000", item]).await;
}

/// Makes the item popular, and stores its page.
pub async fn store_page(shop: &Shop, item: &str) {
    make_popular(shop, item).await;
    let answer = shop.visit(&format!("/products/{item}")).await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
    shop.settled().await;
}

/// Voids all pages.
pub async fn purge_all(shop: &Shop) {
    service(shop, Method::POST, "/purge", Some(&json!({"all": true}))).await;
}

/// The visitor's name: the value of the cookie `sid`.
pub fn name(asked: &Asked) -> &str {
    asked.header("cookie").split("; ").find_map(|cookie| cookie.strip_prefix("sid=")).unwrap_or("guest")
}

/// Visits the mug's page with these cookies.
pub async fn visit(shop: &Shop, cookies: &str) -> reqwest::Response {
    shop.get("/products/mug").header("cookie", cookies).send().await.unwrap()
}

/// The value of `Cache-Status`.
pub fn cache_status(answer: &reqwest::Response) -> String {
    header(answer, "cache-status")
}

/// Returns whether the response came from the cache.
pub fn is_hit(answer: &reqwest::Response) -> bool {
    cache_status(answer).starts_with("edgefront; hit; ttl=")
}

/// A header's value, or "" without one.
pub fn header(answer: &reqwest::Response, name: &str) -> String {
    support::header(answer.headers(), name).to_owned()
}

/// The keys of all stored pages.
pub async fn stored_pages(shop: &Shop) -> Vec<String> {
    serde_json::from_value(shop.store.raw(&["KEYS", "cache:*"]).await).expect("a list of keys")
}
