//! Insights on a real server: decay, bounds, and the scripts against a naive model that keeps every order.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use edgefront::{
    config::{CartConfig, InsightsConfig},
    orders::{
        Order,
        insights::{self, BoughtByViewers, MAX_BOUGHT_ITEMS, MAX_VIEWED_ITEMS},
    },
    ports::time::Timestamp,
    schema::ids::ItemId,
};
use futures_util::future::join_all;
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use serde_json::json;

use crate::support::Store;

const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;
const CONFIG: InsightsConfig = InsightsConfig { half_life: Duration::from_secs(WEEK), keep: 20_000 };
/// The start of a half-life.
const START: Timestamp = Timestamp::from_millis(2_976 * WEEK * 1_000);

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn item(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

fn items(ids: &[&str]) -> Vec<ItemId> {
    ids.iter().map(|id| item(id)).collect()
}

fn order(id: &str, items: &[ItemId]) -> Order {
    let items: Vec<_> = items.iter().map(|item| json!({"id": item.as_str(), "quantity": 1})).collect();
    let order = json!({"order_id": id, "items": items}).to_string();
    Order::parse(&order, &CartConfig { max_lines: 100, max_quantity: 999 }).unwrap()
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

/// One entry per count: the half-life in which it was counted.
type Times = Vec<u64>;

/// The naive model. It keeps the half-life of each count, and each read adds up the weights. It shares only the bounds
/// with the scripts.
#[derive(Default)]
struct Model {
    /// Items that the totals keep.
    keep: usize,
    orders: BTreeSet<String>,
    totals: BTreeMap<ItemId, Times>,
    /// The half-life of the last order.
    totals_touched: u64,
    bought: BTreeMap<ItemId, Counts>,
    led_to: BTreeMap<ItemId, Counts>,
}

#[derive(Default)]
struct Counts {
    touched: u64,
    orders: Times,
    items: BTreeMap<ItemId, Times>,
    truncated: bool,
}

fn weigh(times: &Times, present: u64) -> f64 {
    times.iter().map(|time| 0.5_f64.powi(i32::try_from(present - time).unwrap())).sum()
}

impl Counts {
    fn is_over(&self, present: u64) -> bool {
        present - self.touched >= 10
    }

    fn count(&mut self, bought: &[ItemId], own: Option<&ItemId>, present: u64) {
        if self.is_over(present) {
            *self = Self::default();
        }
        self.touched = present;
        self.orders.push(present);
        for item in bought.iter().filter(|item| Some(*item) != own) {
            self.items.entry(item.clone()).or_default().push(present);
        }
        if self.items.len() <= 120 {
            return;
        }
        self.truncated = true;
        let mut best: Vec<_> = self.items.iter().map(|(item, times)| (item.clone(), weigh(times, present))).collect();
        best.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        for (item, _) in best.iter().skip(100) {
            self.items.remove(item);
        }
    }
}

impl Model {
    fn learn(&mut self, id: &str, bought: &[ItemId], viewed: &[ItemId], present: u64) -> bool {
        if !self.orders.insert(id.to_owned()) {
            return false;
        }
        let bought = &bought[..bought.len().min(20)];
        if present > self.totals_touched {
            self.totals.retain(|_, times| weigh(times, present) > 0.5_f64.powi(20));
            self.totals_touched = present;
        }
        for item in bought {
            self.totals.entry(item.clone()).or_default().push(present);
            if bought.len() > 1 {
                self.bought.entry(item.clone()).or_default().count(bought, Some(item), present);
            }
        }
        let mut worst: Vec<_> = self.totals.iter().map(|(item, times)| (weigh(times, present), item.clone())).collect();
        worst.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        for (_, item) in worst.iter().take(worst.len().saturating_sub(self.keep)) {
            self.totals.remove(item);
        }
        for item in viewed.iter().take(25) {
            self.led_to.entry(item.clone()).or_default().count(bought, None, present);
        }
        true
    }

    fn total(&self, item: &ItemId, present: u64) -> Option<f64> {
        self.totals.get(item).map(|times| weigh(times, present))
    }

    fn together(&self, item: &ItemId, present: u64) -> BTreeMap<String, f64> {
        let counts = self.bought.get(item).filter(|counts| !counts.is_over(present));
        let (Some(counts), Some(own)) = (counts, self.total(item, present)) else { return BTreeMap::new() };
        let score = |(other, times): (&ItemId, &Times)| {
            let cosine = weigh(times, present) / (own * self.total(other, present)?).sqrt();
            Some((other.to_string(), cosine.min(1.0)))
        };
        counts.items.iter().filter_map(score).collect()
    }

    fn by_viewers(&self, item: &ItemId, present: u64) -> (f64, BTreeMap<String, f64>) {
        let counts = self.led_to.get(item).filter(|counts| !counts.is_over(present));
        let Some(counts) = counts else { return (0.0, BTreeMap::new()) };
        let orders = weigh(&counts.orders, present);
        let share = |(item, times): (&ItemId, &Times)| (item.to_string(), weigh(times, present) / orders);
        (orders, counts.items.iter().map(share).collect())
    }
}

/// A step of a test case.
#[derive(Debug, Clone)]
enum Step {
    /// An order: its number (some repeat), the bought items, the viewed items.
    Order(u8, Vec<u8>, Vec<u8>),
    /// Days pass.
    Wait(u64),
}

const ITEMS: u8 = 160;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Four items are in most orders: only they reach more than a hundred co-items. Many orders exceed the number of
    // items that count.
    let some = || prop::collection::vec(prop_oneof![2 => 0..4_u8, 5 => 0..ITEMS], 1..=40);
    let few = || prop::collection::vec(0..12_u8, 1..=3);
    let bought = prop_oneof![3 => some(), 2 => few()];
    let viewed = prop_oneof![1 => Just(Vec::new()), 3 => prop::collection::vec(0..40_u8, 1..=60)];
    let order = (0..60_u8, bought, viewed).prop_map(|(id, bought, viewed)| Step::Order(id, bought, viewed));
    let wait = prop_oneof![6 => 1..=10_u64, 1 => 20..=90_u64].prop_map(Step::Wait);
    prop::collection::vec(prop_oneof![6 => order, 1 => wait], 1..=60)
}

fn named(numbers: &[u8]) -> Vec<ItemId> {
    let mut seen = BTreeSet::new();
    let numbers = numbers.iter().filter(|number| seen.insert(**number));
    numbers.map(|number| item(&format!("item-{number:03}"))).collect()
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

/// Executes the steps on the scripts and the model, and compares all results. Returns which bounds were reached.
async fn compare(steps: &[Step], keep: u64) -> [bool; 4] {
    let (store, mut model) = (Store::new().await, Model { keep: usize::try_from(keep).unwrap(), ..Model::default() });
    let config = InsightsConfig { keep, ..CONFIG };
    let (mut days, mut reached) = (0, [false; 4]);
    for step in steps {
        match step {
            Step::Wait(more) => {
                days += more;
                reached[0] |= *more >= 70;
            }
            Step::Order(id, bought, viewed) => {
                let (id, bought, viewed) = (id.to_string(), named(bought), named(viewed));
                let order = order(&id, &bought);
                let counted = insights::learn(&store.redis, &order, &viewed, after(days * DAY), &config).await;
                let expected = model.learn(&id, &bought, &viewed, days / 7);
                assert_eq!(counted, Ok(expected), "order {id}");
                reached[1] |= bought.len() > MAX_BOUGHT_ITEMS && viewed.len() > MAX_VIEWED_ITEMS;
            }
        }
    }
    let (now, present) = (after(days * DAY), days / 7);
    assert_eq!(store.raw(&["ZCARD", "bought:"]).await, model.totals.len());
    reached[2] = model.totals.len() == model.keep;
    // All frequent items and a quarter of the others, because each takes three requests.
    for number in (0..ITEMS).filter(|number| *number < 12 || number % 4 == 0) {
        let name = format!("item-{number:03}");
        let of = item(&name);
        let expected = model.together(&of, present);
        assert_close(&together(&store, &name, now, &config).await, &expected, &name);
        reached[3] |= model.bought.get(&of).is_some_and(|counts| counts.truncated);
        let found = insights::item_stats(&store.redis, &of, now, &config).await.unwrap().orders;
        assert!(is_close(found, model.total(&of, present).unwrap_or_default()), "{name}: {found}");
        if number < 40 {
            let (orders, shares) = model.by_viewers(&of, present);
            let found = by_viewers(&store, &name, now).await;
            assert!(is_close(found.orders, orders), "{name}: found {}, expected {orders}", found.orders);
            let found: Vec<_> = found.shares.into_iter().map(|(item, share)| (item.to_string(), share)).collect();
            assert_close(&found, &shares, &name);
        }
    }
    reached
}

#[test]
fn the_scripts_agree_with_a_naive_model() {
    let config =
        ProptestConfig { cases: 10, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reached = std::cell::Cell::new([false; 4]);
    let cases = (steps(), prop_oneof![Just(30_u64), Just(1_000)]);
    let outcome = runner.run(&cases, |(steps, keep)| {
        let (before, now) = (reached.get(), runtime.block_on(compare(&steps, keep)));
        reached.set(std::array::from_fn(|bound| before[bound] || now[bound]));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(reached.get(), [true; 4], "bounds: ten half-lives, the largest order, all totals, all pairs of an item");
}
