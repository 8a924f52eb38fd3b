//! The top lists of many baskets, and of an item with many partners, against exact ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use edgefront::{
    orders::insights::{self, MAX_BOUGHT_ITEMS, MAX_VIEWED_ITEMS},
    schema::ids::ItemId,
};
use futures_util::{StreamExt, stream};

use super::{CONFIG, START, item, order};
use crate::support::Store;

/// Item → other item → orders with both.
type Tally<'a> = BTreeMap<&'a ItemId, BTreeMap<&'a ItemId, f64>>;

/// Bought and viewed items.
type Basket = (Vec<ItemId>, Vec<ItemId>);

/// 9,835 baskets with 169 items, as in the groceries data set (Hahsler, Hornik, Reutterer: "Implications of
/// Probabilistic Data Modeling for Mining Association Rules", 2006): 4.4 items in the mean, at most 32, and a few items
/// in most baskets.
#[tokio::test]
async fn every_top_list_of_a_real_number_of_baskets_is_exact() {
    let baskets = baskets(9_835, 169);
    let store = Store::new().await;
    let learnt = stream::iter(baskets.iter().enumerate()).map(async |(number, (bought, viewed))| {
        insights::learn(&store.redis, &order(&number.to_string(), bought), viewed, START, &CONFIG).await.unwrap()
    });
    assert!(learnt.buffer_unordered(32).all(async |is_new| is_new).await);
    let (mut orders, mut views) = (BTreeMap::<_, f64>::new(), BTreeMap::<_, f64>::new());
    let (mut pairs, mut led) = (Tally::new(), Tally::new());
    for (bought, viewed) in &baskets {
        let bought = &bought[..bought.len().min(MAX_BOUGHT_ITEMS)];
        for one in bought {
            *orders.entry(one).or_default() += 1.0;
            let others = pairs.entry(one).or_default();
            bought.iter().filter(|other| *other != one).for_each(|other| *others.entry(other).or_default() += 1.0);
        }
        for one in viewed {
            *views.entry(one).or_default() += 1.0;
            let others = led.entry(one).or_default();
            for other in bought {
                *others.entry(other).or_default() += 1.0;
            }
        }
    }
    let partners = pairs.values().map(BTreeMap::len).max();
    assert!(partners > Some(120), "an item has more partners than an older version kept: {partners:?}");
    for one in orders.keys().copied() {
        let together = ranked(&pairs, one, |other, count| count / (orders[one] * orders[other]).sqrt());
        let by_viewers = ranked(&led, one, |_, count| count / views[one]);
        for limit in [5, 10, 20] {
            assert_eq!(best(&store, one.as_str(), limit).await, together[..limit.min(together.len())], "{one}");
            let found = insights::bought_by_viewers(&store.redis, one, limit, START, &CONFIG).await.unwrap();
            let found: Vec<_> = found.shares.into_iter().map(|(item, _)| item).collect();
            assert_eq!(found, by_viewers[..limit.min(by_viewers.len())], "by viewers of {one}");
        }
    }
}

/// An item of every order: its 20 best partners are exact up to 10,000 partners, and its key is bounded.
#[tokio::test]
async fn the_best_of_ten_thousand_partners_are_exact_and_more_are_dropped() {
    // In the book's layout, because the test reads the size of one key.
    let store = Store::book().await;
    let mut tally = BTreeMap::new();
    buy_with_hub(&store, 0..554, &mut tally).await;
    assert!((9_980..=10_000).contains(&tally.len()), "{}", tally.len());
    assert_eq!(partners_of_hub(&store).await, tally.len());
    let hub = item("hub");
    // Each partner is bought with the hub only, so its own orders are those with the hub.
    let exact = |tally: &BTreeMap<ItemId, f64>, orders: f64| {
        let tally: Tally<'_> = [(&hub, tally.iter().map(|(other, count)| (other, *count)).collect())].into();
        ranked(&tally, &hub, |_, count| count / (orders * count).sqrt())
    };
    assert_eq!(best(&store, "hub", 20).await, exact(&tally, 554.0)[..20]);

    buy_with_hub(&store, 554..700, &mut tally).await;

    let kept = partners_of_hub(&store).await;
    assert!((8_000..=10_000).contains(&kept), "{kept} of {}", tally.len());
    assert_eq!(best(&store, "hub", 15).await, exact(&tally, 700.0)[..15], "the frequent ones stay");
    let bytes = store.raw(&["MEMORY", "USAGE", "bought:hub"]).await.as_u64().unwrap();
    assert!(bytes < 1_500_000, "{bytes}");
}

/// One order per number: the hub, one of 15 frequent partners, and 18 partners that no other order has.
async fn buy_with_hub(store: &Store, numbers: Range<usize>, tally: &mut BTreeMap<ItemId, f64>) {
    for number in numbers {
        // Triangular numbers: each frequent partner has another number of orders.
        let frequent = (0..15).find(|place| number % 120 < (place + 1) * (place + 2) / 2).unwrap_or(14);
        let rare = (0..18).map(|place| item(&format!("partner-{:05}", number * 18 + place)));
        let partners: Vec<_> = [item(&format!("best-{frequent:02}"))].into_iter().chain(rare).collect();
        for partner in &partners {
            *tally.entry(partner.clone()).or_default() += 1.0;
        }
        let items: Vec<_> = [item("hub")].into_iter().chain(partners).collect();
        insights::learn(&store.redis, &order(&number.to_string(), &items), &[], START, &CONFIG).await.unwrap();
    }
}

/// The number of counted partners of the hub: its fields but one.
async fn partners_of_hub(store: &Store) -> usize {
    let fields = store.raw(&["HLEN", "bought:hub"]).await.as_u64().unwrap();
    usize::try_from(fields).unwrap() - 1
}

async fn best(store: &Store, id: &str, limit: usize) -> Vec<ItemId> {
    let found = insights::bought_together(&store.redis, &item(id), limit, START, &CONFIG).await.unwrap();
    found.into_iter().map(|related| related.item).collect()
}

/// The others of `one`, best first: by score, then by count, then by name.
fn ranked(tally: &Tally<'_>, one: &ItemId, score: impl Fn(&ItemId, f64) -> f64) -> Vec<ItemId> {
    let others = tally.get(one).into_iter().flatten();
    let mut scored: Vec<_> = others.map(|(other, count)| (score(other, *count), *count, (*other).clone())).collect();
    scored.sort_by(|one, other| {
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)).then_with(|| one.2.cmp(&other.2))
    });
    scored.into_iter().map(|(_, _, item)| item).collect()
}

/// Vigna's splitmix64: the same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// The popularity of items is skewed (Zipf), and a third of the items are of the same department as the one before.
fn baskets(count: usize, items: u64) -> Vec<Basket> {
    let mut sum = 0;
    let cumulated: Vec<u64> = (1..=items)
        .map(|rank| {
            sum += 1_000_000 / (rank + 3);
            sum
        })
        .collect();
    let mut numbers = Numbers(0);
    let name = |number: &u64| item(&format!("item-{number:03}"));
    let basket = |_| {
        let mut size = 1;
        while size < 32 && numbers.below(1_000) < 770 {
            size += 1;
        }
        let mut bought = Vec::<u64>::new();
        while bought.len() < size {
            let popular = numbers.below(sum);
            let next = match bought.last() {
                Some(last) if numbers.below(3) == 0 => (last / 13 * 13 + numbers.below(13)).min(items - 1),
                _ => cumulated.partition_point(|sum| *sum <= popular) as u64,
            };
            if !bought.contains(&next) {
                bought.push(next);
            }
        }
        let mut viewed: BTreeSet<_> = bought.iter().filter(|_| numbers.below(2) == 0).copied().collect();
        viewed.insert(numbers.below(items));
        (bought.iter().map(name).collect(), viewed.iter().take(MAX_VIEWED_ITEMS).map(name).collect())
    };
    (0..count).map(basket).collect()
}
