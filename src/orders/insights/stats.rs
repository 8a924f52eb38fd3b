//! One item's figures.

use super::decay::HalfLife;
use crate::{
    config::InsightsConfig,
    ports::{error::Error, time::Timestamp},
    schema::ids::ItemId,
    upstash::{Command, Redis},
};

/// What is known of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemStats {
    /// 0 is the most viewed item; None if it does not rank.
    pub rank: Option<u64>,
    /// Views as the ranking counts them: faded by `RANKING_HALF_LIFE`.
    pub views: f64,
    /// Orders with this item, faded by `INSIGHTS_HALF_LIFE`.
    pub orders: f64,
}

/// The figures of `item`; zeros if nothing is known. One pipeline: they do not depend on each other.
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
    let of = |command, key: String| Command::read(command).arg(key).arg(item.as_str());
    let (rank, views, orders, rescaled): (_, Option<f64>, Option<f64>, Option<f64>) = redis
        .all(&[
            of("ZRANK", keys.ranking()),
            of("ZSCORE", keys.ranking()),
            of("ZSCORE", keys.purchases()),
            Command::read("GET").arg(keys.purchases_rescaled()),
        ])
        .await?;
    let present = HalfLife::of(now, config.half_life);
    let weight = rescaled.map_or(1.0, |began| present.weight(began));
    // Views are negative scores; `0 -` and not `-`, since the latter makes -0 of 0.
    Ok(ItemStats { rank, views: 0.0 - views.unwrap_or_default(), orders: weight * orders.unwrap_or_default() })
}
