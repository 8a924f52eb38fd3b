//! Related items, by two measures: bought together, and bought after a view.

use std::{cmp::Ordering, collections::HashMap};

use serde::Deserialize;

use super::half_life::HalfLife;
use crate::{
    config::InsightsConfig,
    ports::{error::Error, sort, time::Timestamp},
    schema::{ids::ItemId, redis::Redis, scripts::RELATED},
};
use upstash_rest::Command;

/// An item that is bought together with another.
#[derive(Debug, Clone, PartialEq)]
pub struct BoughtTogether {
    pub item: ItemId,
    /// Cosine similarity of the two items, 0 to 1. An item's vector has one component per order: 1 if the order
    /// contains the item, else 0. Older orders weigh less.
    pub score: f64,
}

/// Purchases of visitors who had viewed an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoughtByViewers {
    /// Orders by visitors who had viewed the item, decayed.
    pub orders: f64,
    /// Item → its share of these orders, 0 to 1; the highest first. The viewed item itself may be among them.
    pub shares: Vec<(ItemId, f64)>,
}

/// The value of `bought:{item}` and `led-to:{item}`, as the scripts write it.
#[derive(Deserialize)]
struct CoItemCounts {
    /// The Unix second of the start of the half-life that the counts belong to.
    began: f64,
    orders: f64,
    items: HashMap<String, f64>,
}

impl CoItemCounts {
    /// Parses the counts. None if they have expired, or if other code wrote the value.
    fn parse(text: &str, present: HalfLife) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|counts: &Self| !present.has_expired(counts.began))
    }
}

/// The `limit` items that are most often bought together with `item`, by cosine similarity: `c_ij / √(c_i · c_j)`, of
/// the decayed numbers of orders with both items, with the one and with the other. Linden, Smith, York: "Amazon.com
/// Recommendations: Item-to-Item Collaborative Filtering", IEEE Internet Computing 7(1), 2003, pp. 76-80; Sarwar,
/// Karypis, Konstan, Riedl: "Item-Based Collaborative Filtering Recommendation Algorithms", WWW 10, 2001, pp. 285-295.
///
/// One script, because the pairs that it reads determine the totals to read.
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
    type Reply = (String, Option<f64>, Vec<String>, Vec<Option<f64>>);
    let keys = redis.keys();
    let keys = [keys.bought_together(item), keys.purchases(), keys.purchases_rescaled()];
    let reply: Option<Reply> = redis.run(Command::script(&RELATED, keys).arg(item.as_str()).repeatable()).await?;
    let Some((text, rescaled, items, totals)) = reply else { return Ok(Vec::new()) };
    let present = HalfLife::containing(now, config.half_life);
    let Some(counts) = CoItemCounts::parse(&text, present) else { return Ok(Vec::new()) };
    // The totals may belong to another half-life than the pairs.
    let weight = present.weight(counts.began) / rescaled.map_or(1.0, |start| present.weight(start));
    let totals: HashMap<_, _> = items.into_iter().zip(totals).collect();
    let total = |item: &str| totals.get(item).copied().flatten();
    let Some(own) = total(item.as_str()) else { return Ok(Vec::new()) };
    let scored = counts.items.iter().filter_map(|(other, count)| {
        // An item without a total is bought too rarely to have a score.
        let score = weight * count / (own * total(other)?).sqrt();
        // A total that was dropped and started again may be smaller than the pair's count.
        let score = if score.is_finite() { score.min(1.0) } else { return None };
        Some((BoughtTogether { item: ItemId::parse(other).ok()?, score }, *count))
    });
    let mut scored: Vec<_> = scored.collect();
    // Among equal scores, the pair with more orders comes first.
    sort::sort_by(&mut scored, |(one, count), (other, other_count)| {
        descending(one.score, other.score)
            .then_with(|| descending(*count, *other_count))
            .then_with(|| one.item.cmp(&other.item))
    });
    Ok(scored.into_iter().map(|(related, _)| related).take(limit).collect())
}

/// The `limit` items with the highest shares of the orders by visitors who had viewed `item`. A share is `n_ij / n_i`,
/// the confidence of the rule "viewed i ⇒ bought j". Agrawal, Imieliński, Swami: "Mining Association Rules between Sets
/// of Items in Large Databases", ACM SIGMOD 1993, pp. 207-216.
///
/// One command.
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
    let present = HalfLife::containing(now, config.half_life);
    let counts = text.and_then(|text| CoItemCounts::parse(&text, present)).filter(|counts| counts.orders > 0.0);
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
