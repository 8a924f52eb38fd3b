//! The visitors of `cargo xtask dev --visitors N`, in a shop in workerd with a real D1.

use std::time::Duration;

use http::Method;
use serde_json::json;
use xtask::{sample_visitors::SampleShop, variables::Variables};

use super::{open, read_json};
use crate::support::{SERVICE_KEY, Shop, eventually};

/// A visitor with this pause does not leave the first page while a test runs.
const LONG_PAUSE: Duration = Duration::from_hours(1);

fn variables(origin: &str) -> Variables {
    [("ORIGIN_URL", origin), ("SERVICE_KEY", SERVICE_KEY)].map(|(name, value)| (name.into(), value.into())).into()
}

/// Lets `visitors` walk while `work` runs.
async fn walk_during(shop: &Shop, visitors: u8, pause: Duration, work: impl Future<Output = ()>) {
    let variables = variables("");
    let sample = SampleShop::of(&shop.url, &variables).expect("the demo shop is the origin");
    tokio::select! {
        () = sample.keep_walking(visitors, pause) => panic!("the walk ended"),
        () = work => {}
    }
}

/// The number of sessions of a walking visitor.
async fn sessions(shop: &Shop, walker: usize) -> usize {
    let path = format!("/_edge/v1/users/walker-{walker}@example.org/sessions");
    let answer = shop.request(Method::GET, &path).bearer_auth(SERVICE_KEY).send().await.expect("an answer");
    let content: serde_json::Value = answer.json().await.expect("JSON");
    content["sessions"].as_array().unwrap_or_else(|| panic!("{content}")).len()
}

#[tokio::test]
async fn as_many_visitors_walk_as_the_option_says() {
    let shop = open().await;
    let work = async {
        eventually("two visitors look at their first pages", async || {
            let popular = read_json(&shop, "/_edge/v1/popular").await;
            popular["items"].as_array().is_some_and(|items| items.len() == 2)
        })
        .await;
        let counts = [sessions(&shop, 0).await, sessions(&shop, 1).await, sessions(&shop, 2).await];
        assert_eq!(counts, [1, 1, 0]);
    };
    walk_during(&shop, 2, LONG_PAUSE, work).await;
}

/// The first two visits of a visitor leave no order.
#[tokio::test]
async fn a_visitor_comes_back_and_orders_on_the_third_visit() {
    let shop = open().await;
    let work = async {
        eventually("the visitor of the third taste orders", async || {
            read_json(&shop, "/_edge/v1/items/chefs-knife-20-cm/stats").await["orders"] == json!(1.0)
        })
        .await;
        // The last item belongs to the fourth visit.
        for viewed in ["pour-over-dripper-copper", "moka-pot-6-cups", "chefs-knife-20-cm", "linen-napkins-rust"] {
            eventually(&format!("{viewed} has a view"), async || {
                let stats = read_json(&shop, &format!("/_edge/v1/items/{viewed}/stats")).await;
                stats["views"].as_f64().is_some_and(|views| views >= 1.0)
            })
            .await;
        }
    };
    walk_during(&shop, 1, Duration::ZERO, work).await;
}

#[tokio::test]
async fn no_visitor_walks_for_zero_or_in_another_shop() {
    let shop = open().await;
    let work = async {
        // A first visitor would have looked at pages by then.
        for _ in 0..20 {
            shop.visit("/").await;
        }
        shop.settled().await;
        assert_eq!(read_json(&shop, "/_edge/v1/popular").await["items"], json!([]));
        assert_eq!(sessions(&shop, 0).await, 0);
    };
    walk_during(&shop, 0, Duration::ZERO, work).await;
    assert!(SampleShop::of(&shop.url, &variables("http://127.0.0.1:1")).is_none());
}
