//! Random orders on the scripts and on a naive model that keeps every order.

use std::collections::{BTreeMap, BTreeSet};

use edgefront::{
    config::InsightsConfig,
    orders::insights::{self, MAX_BOUGHT_ITEMS, MAX_VIEWED_ITEMS},
    schema::ids::ItemId,
};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

use super::{CONFIG, DAY, after, assert_close, by_viewers, is_close, item, order, together};
use crate::support::Store;

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
        reached[3] |= model.bought.get(&of).is_some_and(|counts| counts.items.len() > 120);
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
    assert_eq!(
        reached.get(),
        [true; 4],
        "bounds: ten half-lives, the largest order, all totals, many pairs of an item"
    );
}
