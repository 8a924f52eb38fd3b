//! Related items, by two measures: bought together, and bought after a view.

use super::half_life::HalfLife;
use crate::{
    config::InsightsConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, redis::Redis, scripts::RELATED},
};
use upstash_rest::{Command, Pairs};

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

/// The `limit` items that are most often bought together with `item`, by cosine similarity: `c_ij / √(c_i · c_j)`, of
/// the decayed numbers of orders with both items, with the one and with the other. Linden, Smith, York: "Amazon.com
/// Recommendations: Item-to-Item Collaborative Filtering", IEEE Internet Computing 7(1), 2003, pp. 76-80; Sarwar,
/// Karypis, Konstan, Riedl: "Item-Based Collaborative Filtering Recommendation Algorithms", WWW 10, 2001, pp. 285-295.
///
/// One script, because the pairs that it reads determine the totals to read, and because it returns the best of up to
/// 10,000 items.
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
    let keys = redis.keys();
    let keys = [keys.bought_together(item), keys.purchases(), keys.purchases_rescaled()];
    let command = command(keys, limit, now, config).arg(item.as_str());
    let reply: Option<RankedItems> = redis.run(redis.near(command)).await?;
    let ranked = reply.map(|(_, ranked)| parse(ranked)).unwrap_or_default();
    Ok(ranked.into_iter().map(|(item, score)| BoughtTogether { item, score }).collect())
}

/// The `limit` items with the highest shares of the orders by visitors who had viewed `item`. A share is `n_ij / n_i`,
/// the confidence of the rule "viewed i ⇒ bought j". Agrawal, Imieliński, Swami: "Mining Association Rules between Sets
/// of Items in Large Databases", ACM SIGMOD 1993, pp. 207-216.
///
/// One script, because it returns the best of up to 10,000 items.
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
    let command = command([redis.keys().bought_after_viewing(item)], limit, now, config);
    let reply: Option<RankedItems> = redis.run(redis.near(command)).await?;
    Ok(reply.map(|(orders, ranked)| BoughtByViewers { orders, shares: parse(ranked) }).unwrap_or_default())
}

/// The script's reply: the decayed number of orders, and items with their scores, best first.
type RankedItems = (f64, Pairs<String, f64>);

fn command(keys: impl IntoIterator<Item = String>, limit: usize, now: Timestamp, config: &InsightsConfig) -> Command {
    let HalfLife { start, length } = HalfLife::containing(now, config.half_life);
    Command::script(&RELATED, keys).num(start).num(length).num(limit).repeatable()
}

/// Leaves out names that are not item ids, which other code may have written.
fn parse(Pairs(ranked): Pairs<String, f64>) -> Vec<(ItemId, f64)> {
    ranked.into_iter().filter_map(|(item, score)| Some((ItemId::parse(&item).ok()?, score))).collect()
}
