//! The figures of one item.

use super::half_life::HalfLife;
use crate::{
    config::InsightsConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, redis::Redis},
};
use upstash_rest::Command;

/// The figures of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemStats {
    /// Place in the ranking, 0 for the most viewed item; None if the item is not ranked.
    pub rank: Option<u64>,
    /// Views in the ranking, decayed by `RANKING_HALF_LIFE`.
    pub views: f64,
    /// Orders with this item, decayed by `INSIGHTS_HALF_LIFE`.
    pub orders: f64,
}

/// The figures of `item`; an unknown item has no rank, and zeros. One pipeline, because the reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn item_stats(
    redis: &Redis,
    item: &ItemId,
    now: Timestamp,
    config: &InsightsConfig,
) -> Result<ItemStats, Error> {
    let keys = redis.keys();
    let read = |command, key: String| Command::read(command).arg(key).arg(item.as_str());
    let (rank, views, orders, rescaled): (_, Option<f64>, Option<f64>, Option<f64>) = redis
        .all(&[
            read("ZRANK", keys.ranking()),
            read("ZSCORE", keys.ranking()),
            read("ZSCORE", keys.purchases()),
            Command::read("GET").arg(keys.purchases_rescaled()),
        ])
        .await?;
    let present = HalfLife::containing(now, config.half_life);
    let weight = rescaled.map_or(1.0, |start| present.weight(start));
    // Scores are negative views. `0.0 -` instead of a minus sign, which makes -0 of 0.
    Ok(ItemStats { rank, views: 0.0 - views.unwrap_or_default(), orders: weight * orders.unwrap_or_default() })
}
