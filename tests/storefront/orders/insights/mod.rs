//! Insights on a real server: decay, bounds, and the scripts against a naive model that keeps every order.

use std::{collections::BTreeMap, time::Duration};

use edgefront::{
    config::InsightsConfig,
    orders::{
        Order,
        insights::{self, BoughtByViewers, MAX_BOUGHT_ITEMS, MAX_VIEWED_ITEMS},
    },
    ports::time::Timestamp,
    schema::ids::ItemId,
};
use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::{Store, item};

/// Real numbers of baskets and of partners: the top lists are exact.
mod baskets;
/// Random orders, against a naive model.
mod model;

const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;
const CONFIG: InsightsConfig = InsightsConfig { half_life: Duration::from_secs(WEEK), keep: 20_000 };
/// The start of a half-life.
const START: Timestamp = Timestamp::from_millis(2_976 * WEEK * 1_000);

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn items(ids: &[&str]) -> Vec<ItemId> {
    ids.iter().map(|id| item(id)).collect()
}

fn order(id: &str, items: &[ItemId]) -> Order {
    let items: Vec<_> = items.iter().map(|item| json!({"id": item.as_str(), "quantity": 1})).collect();
    let order = json!({"order_id": id, "items": items}).to_string();
    Order::parse(&order).unwrap()
}

async fn learn(store: &Store, id: &str, bought: &[&str], viewed: &[&str], now: Timestamp) -> bool {
    insights::learn(&store.redis, &order(id, &items(bought)), &items(viewed), now, &CONFIG).await.unwrap()
}

/// All items that are bought together with an item: other item → score.
async fn together(store: &Store, id: &str, now: Timestamp, config: &InsightsConfig) -> Vec<(String, f64)> {
    let found = insights::bought_together(&store.redis, &item(id), 1_000, now, config).await.unwrap();
    found.into_iter().map(|related| (related.item.to_string(), related.score)).collect()
}

async fn by_viewers(store: &Store, id: &str, now: Timestamp) -> BoughtByViewers {
    insights::bought_by_viewers(&store.redis, &item(id), 1_000, now, &CONFIG).await.unwrap()
}

async fn orders_of(store: &Store, id: &str, now: Timestamp) -> f64 {
    insights::item_stats(&store.redis, &item(id), now, &CONFIG).await.unwrap().orders
}

fn list(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
    pairs.iter().map(|(item, score)| ((*item).to_owned(), *score)).collect()
}

#[tokio::test]
async fn an_order_counts_half_after_each_half_life() {
    let store = Store::new().await;
    assert!(learn(&store, "1", &["mug", "pan"], &["lamp"], START).await);
    for (seconds, weight) in [(0, 1.0), (WEEK - 1, 1.0), (WEEK, 0.5), (3 * WEEK, 0.125)] {
        assert_about(orders_of(&store, "mug", after(seconds)).await, weight);
        assert_about(by_viewers(&store, "lamp", after(seconds)).await.orders, weight);
        // Both counts decay alike, so the score stays.
        assert_eq!(together(&store, "mug", after(seconds), &CONFIG).await, list(&[("pan", 1.0)]));
    }
    learn(&store, "2", &["mug", "cup"], &[], after(WEEK)).await;
    // 0.5 / √(1.5 · 0.5) and 1 / √(1.5 · 1)
    let expected = list(&[("cup", (1.0_f64 / 1.5).sqrt()), ("pan", (0.5_f64 / 1.5).sqrt())]).into_iter().collect();
    let found = together(&store, "mug", after(WEEK), &CONFIG).await;
    assert_close(&found, &expected, "mug");
}

#[tokio::test]
async fn pairs_expire_after_ten_half_lives_without_an_order() {
    let store = Store::new().await;
    learn(&store, "1", &["mug", "pan"], &["lamp"], START).await;
    for key in ["bought:mug", "bought:pan", "led-to:lamp"] {
        let ttl = store.raw(&["TTL", key]).await.as_u64().unwrap();
        assert!((10 * WEEK - 60..=10 * WEEK).contains(&ttl), "{key}: {ttl}");
    }
    assert_eq!(together(&store, "mug", after(10 * WEEK - 1), &CONFIG).await.len(), 1);
    assert_eq!(together(&store, "mug", after(10 * WEEK), &CONFIG).await.len(), 0);
    assert_eq!(by_viewers(&store, "lamp", after(10 * WEEK)).await, BoughtByViewers::default());
    learn(&store, "2", &["mug", "cup"], &["lamp"], after(10 * WEEK)).await;
    assert_eq!(together(&store, "mug", after(10 * WEEK), &CONFIG).await.len(), 1, "only the new pair");
    assert_about(by_viewers(&store, "lamp", after(10 * WEEK)).await.orders, 1.0);
}

#[tokio::test]
async fn concurrent_reports_of_one_order_count_it_once() {
    let store = Store::new().await;
    let counted = join_all((0..8).map(|_| learn(&store, "1", &["mug", "pan"], &["mug"], START))).await;
    assert_eq!(counted.into_iter().filter(|counted| *counted).count(), 1);
    assert_about(orders_of(&store, "mug", START).await, 1.0);
    assert_about(by_viewers(&store, "mug", START).await.orders, 1.0);
}

#[tokio::test]
async fn an_order_whose_reply_was_lost_is_told_as_new_and_counted_once() {
    let store = Store::new().await;
    // Loads the script, so that the fault hits its execution.
    store.load_scripts().await;
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert!(learn(&store, "1", &["mug"], &[], START).await);
    assert!(!learn(&store, "1", &["mug"], &[], START).await, "another report");
    assert_about(orders_of(&store, "mug", START).await, 1.0);
}

#[tokio::test]
async fn a_clock_that_is_behind_changes_no_counts() {
    let store = Store::new().await;
    learn(&store, "1", &["mug", "pan"], &["lamp"], after(WEEK)).await;
    learn(&store, "2", &["mug", "pan"], &["lamp"], START).await;
    for now in [START, after(WEEK)] {
        assert_about(orders_of(&store, "mug", now).await, 2.0);
        assert_about(by_viewers(&store, "lamp", now).await.orders, 2.0);
        assert_eq!(together(&store, "mug", now, &CONFIG).await, list(&[("pan", 1.0)]));
    }
}

#[tokio::test]
async fn a_changed_half_life_keeps_the_insights() {
    let store = Store::new().await;
    learn(&store, "1", &["mug", "pan"], &["lamp"], after(DAY)).await;
    for days in [1, 3, 30, 365] {
        let config = InsightsConfig { half_life: Duration::from_secs(days * DAY), ..CONFIG };
        let order = order(&format!("of-{days}"), &items(&["mug", "pan"]));
        insights::learn(&store.redis, &order, &[], after(DAY), &config).await.unwrap();
        assert_eq!(together(&store, "mug", after(DAY), &config).await, list(&[("pan", 1.0)]), "{days}");
    }
    let orders = orders_of(&store, "mug", after(DAY)).await;
    assert!((4.5..=5.0).contains(&orders), "at most one order was halved, once: {orders}");
}

#[tokio::test]
async fn values_of_other_code_are_overwritten() {
    let store = Store::new().await;
    for (key, value) in [("bought:mug", "no JSON"), ("bought:pan", "7"), ("led-to:lamp", r#"{"items":{}}"#)] {
        store.raw(&["SET", key, value]).await;
    }
    store.raw(&["RPUSH", "led-to:cup", "a list"]).await;
    assert_eq!(together(&store, "mug", START, &CONFIG).await.len(), 0);
    assert_eq!(by_viewers(&store, "lamp", START).await, BoughtByViewers::default());
    assert!(learn(&store, "1", &["mug", "pan"], &["lamp", "cup"], START).await);
    assert_eq!(together(&store, "mug", START, &CONFIG).await, list(&[("pan", 1.0)]));
    for id in ["lamp", "cup"] {
        assert_about(by_viewers(&store, id, START).await.orders, 1.0);
    }
}

/// The largest order reaches all bounds.
#[tokio::test]
async fn the_largest_order_is_truncated_and_counted_in_one_request() {
    let store = Store::new().await;
    let many = |name: &str| (0..100).map(|number| item(&format!("{name}-{number}"))).collect::<Vec<_>>();
    learn(&store, "0", &["x"], &[], START).await;
    let before = store.counts();
    let order = order("1", &many("bought"));
    assert_eq!(insights::learn(&store.redis, &order, &many("viewed"), START, &CONFIG).await, Ok(true));
    assert_eq!(store.counts().requests - before.requests, 1);
    let keys = |pattern: &'static str| async { store.raw(&["KEYS", pattern]).await.as_array().unwrap().len() };
    assert_eq!((keys("bought:?*").await, keys("led-to:*").await), (MAX_BOUGHT_ITEMS, MAX_VIEWED_ITEMS));
    assert_eq!(store.raw(&["ZCARD", "bought:"]).await, MAX_BOUGHT_ITEMS + 1);
}

/// Older versions kept the counts of an item in a JSON string.
#[tokio::test]
async fn counts_of_an_older_version_are_kept() {
    let store = Store::new().await;
    learn(&store, "1", &["mug", "pan"], &["lamp"], START).await;
    let began = START.as_secs();
    for (key, items) in [("bought:mug", r#"{"pan":3,"cup":1}"#), ("led-to:lamp", r#"{"mug":3}"#)] {
        store.raw(&["DEL", key]).await;
        store.raw(&["SET", key, &format!(r#"{{"began":{began},"orders":4,"items":{items}}}"#), "EX", "600"]).await;
    }
    store.raw(&["ZADD", "bought:", "4", "mug", "4", "pan", "4", "cup"]).await;
    let before = list(&[("pan", 0.75), ("cup", 0.25)]);
    assert_eq!(together(&store, "mug", START, &CONFIG).await, before);
    assert_about(by_viewers(&store, "lamp", START).await.orders, 4.0);
    learn(&store, "2", &["mug", "pan"], &["lamp"], START).await;
    assert_eq!(together(&store, "mug", START, &CONFIG).await, list(&[("pan", 0.8), ("cup", 1.0 / 20.0_f64.sqrt())]));
    assert_about(by_viewers(&store, "lamp", START).await.orders, 5.0);
}

/// The unit of the counts doubles with each half-life; before it loses precision, the counts begin anew.
#[tokio::test]
async fn orders_of_forty_half_lives_stay_exact() {
    let store = Store::new().await;
    for week in 0..40 {
        learn(&store, &week.to_string(), &["mug", "pan"], &["lamp"], after(week * WEEK)).await;
    }
    learn(&store, "last", &["mug", "cup"], &["lamp"], after(39 * WEEK)).await;
    let (now, weights) = (after(39 * WEEK), 2.0 - 0.5_f64.powi(39));
    assert_about(by_viewers(&store, "lamp", now).await.orders, weights + 1.0);
    let pan = (weights / (weights + 1.0)).sqrt();
    assert_close(
        &together(&store, "mug", now, &CONFIG).await,
        &[("pan".to_owned(), pan), ("cup".to_owned(), (1.0 / (weights + 1.0)).sqrt())].into_iter().collect(),
        "mug",
    );
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * (1.0 + other.abs())
}

#[track_caller]
fn assert_about(one: f64, other: f64) {
    assert!(is_close(one, other), "found {one}, expected {other}");
}

fn assert_close(found: &[(String, f64)], expected: &BTreeMap<String, f64>, what: &str) {
    assert!(found.is_sorted_by(|one, other| one.1 >= other.1), "{what}: not sorted: {found:?}");
    let found: BTreeMap<_, _> = found.iter().cloned().collect();
    assert!(found.keys().eq(expected.keys()), "{what}: found {found:?}, expected {expected:?}");
    for (item, score) in &found {
        assert!(
            is_close(*score, expected[item]) && (0.0..=1.0).contains(score),
            "{what}, {item}: {score}, {expected:?}"
        );
    }
}
