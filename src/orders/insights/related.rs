//! Which items go with an item, by two measures.

use std::{cmp::Ordering, collections::HashMap};

use serde::Deserialize;

use super::decay::HalfLife;
use crate::schema::scripts::RELATED;
use crate::{
    config::InsightsConfig,
    ports::{error::Error, sort, time::Timestamp},
    schema::ids::ItemId,
    upstash::{Command, Redis},
};

/// An item that is bought together with another.
#[derive(Debug, Clone, PartialEq)]
pub struct BoughtTogether {
    pub item: ItemId,
    /// The cosine of the two items' vectors, whose components are the orders (1 if it is in, faded by the order's age): 0 to 1.
    pub score: f64,
}

/// What those bought who viewed an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoughtByViewers {
    /// Orders by visitors who had viewed it, faded.
    pub orders: f64,
    /// Item → which share of these orders it was in, 0 to 1; the highest first. The viewed item itself may be among them.
    pub shares: Vec<(ItemId, f64)>,
}

/// As the scripts write `bought:{item}` and `led-to:{item}`.
#[derive(Deserialize)]
struct Counts {
    /// The Unix second in which the half-life began that the counts are of.
    began: f64,
    orders: f64,
    items: HashMap<String, f64>,
}

impl Counts {
    /// What is left of them. None if that is nothing, or other code wrote there.
    fn read(text: &str, present: HalfLife) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|counts: &Self| !present.is_over(counts.began))
    }
}

/// The `limit` items that are bought together with `item` most, by cosine similarity: `c_ij / √(c_i · c_j)`, of the (faded) numbers
/// of orders with both, with the one and with the other. Linden, Smith, York: "Amazon.com Recommendations: Item-to-Item
/// Collaborative Filtering", IEEE Internet Computing 7(1), 2003, pp. 76-80; Sarwar, Karypis, Konstan, Riedl: "Item-Based
/// Collaborative Filtering Recommendation Algorithms", WWW 10, 2001, pp. 285-295.
///
/// One script, because which totals are needed depends on what is read.
///
/// # Errors
/// [`Error::Redis`].
pub async fn bought_together(
    redis: &Redis,
    item: &ItemId,
    limit: usize,
    now: Timestamp,
    config: &InsightsConfig,
) -> Result<Vec<BoughtTogether>, Error> {
    type Found = (String, Option<f64>, Vec<String>, Vec<Option<f64>>);
    let keys = redis.keys();
    let keys = [keys.bought_together(item), keys.purchases(), keys.purchases_rescaled()];
    let found: Option<Found> = redis.run(Command::script(&RELATED, keys).arg(item.as_str()).repeatable()).await?;
    let Some((text, rescaled, items, totals)) = found else { return Ok(Vec::new()) };
    let present = HalfLife::of(now, config.half_life);
    let Some(counts) = Counts::read(&text, present) else { return Ok(Vec::new()) };
    // The totals may be of another half-life than the pairs.
    let weight = present.weight(counts.began) / rescaled.map_or(1.0, |began| present.weight(began));
    let totals: HashMap<_, _> = items.into_iter().zip(totals).collect();
    let total = |item: &str| totals.get(item).copied().flatten();
    let Some(own) = total(item.as_str()) else { return Ok(Vec::new()) };
    let scored = counts.items.iter().filter_map(|(other, count)| {
        // An item whose total was dropped is bought too seldom to be told apart.
        let score = weight * count / (own * total(other)?).sqrt();
        // A total that began anew after it was dropped may be less than a pair's count.
        let score = if score.is_finite() { score.min(1.0) } else { return None };
        Some((BoughtTogether { item: ItemId::parse(other).ok()?, score }, *count))
    });
    let mut scored: Vec<_> = scored.collect();
    // Of equals first the one that more orders speak for.
    sort::sort_by(&mut scored, |(one, count), (other, other_count)| {
        descending(one.score, other.score)
            .then_with(|| descending(*count, *other_count))
            .then_with(|| one.item.cmp(&other.item))
    });
    Ok(scored.into_iter().map(|(related, _)| related).take(limit).collect())
}

/// What visitors who had viewed `item` bought: of each item the share of their orders that it was in, `n_ij / n_i`, which is the
/// confidence of the rule "viewed i ⇒ bought j". Agrawal, Imieliński, Swami: "Mining Association Rules between Sets of Items in
/// Large Databases", ACM SIGMOD 1993, pp. 207-216. The `limit` highest.
///
/// # Errors
/// [`Error::Redis`].
pub async fn bought_by_viewers(
    redis: &Redis,
    item: &ItemId,
    limit: usize,
    now: Timestamp,
    config: &InsightsConfig,
) -> Result<BoughtByViewers, Error> {
    let text: Option<String> = redis.run(Command::read("GET").arg(redis.keys().bought_after_viewing(item))).await?;
    let present = HalfLife::of(now, config.half_life);
    let counts = text.and_then(|text| Counts::read(&text, present)).filter(|counts| counts.orders > 0.0);
    let Some(counts) = counts else { return Ok(BoughtByViewers::default()) };
    let share = |(item, count): (String, f64)| Some((ItemId::parse(&item).ok()?, (count / counts.orders).min(1.0)));
    let mut shares: Vec<_> = counts.items.into_iter().filter_map(share).collect();
    sort::sort_by(&mut shares, |(one, share), (other, other_share)| {
        descending(*share, *other_share).then_with(|| one.cmp(other))
    });
    shares.truncate(limit);
    Ok(BoughtByViewers { orders: counts.orders * present.weight(counts.began), shares })
}

fn descending(one: f64, other: f64) -> Ordering {
    other.total_cmp(&one)
}
