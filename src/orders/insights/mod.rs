//! Insights from orders: items that are bought together, and items that visitors buy after they viewed an item.
//! `docs/insights.md` has the formulas, their sources and a worked example.
//!
//! - [`learn`]: counts an order, once.
//! - [`bought_together`], [`bought_by_viewers`]: the items related to an item.
//! - [`item_stats`]: the figures of one item.
//! - [`half_life`]: the decay of the counts.
//!
//! Memory is bounded: one total for each of the [`InsightsConfig::keep`] items that are bought most. Each item has two
//! keys, which count at most 10,000 other items and expire after ten half-lives without an order. Of an order,
//! [`MAX_BOUGHT_ITEMS`] items count, and [`MAX_VIEWED_ITEMS`] items that its visitor viewed. No job sweeps over the
//! keys: each key decays when it is next used.

pub mod half_life;

mod related;
mod stats;

pub use related::{BoughtByViewers, BoughtTogether, bought_by_viewers, bought_together};
pub use stats::{ItemStats, item_stats};

use self::half_life::HalfLife;
use crate::{
    config::InsightsConfig,
    orders::Order,
    ports::{error::Error, random, time::Timestamp},
    schema::{hex, ids::ItemId, keys, redis::Redis, scripts::LEARN},
    sessions,
};
use upstash_rest::Command;

/// Items of an order that count: the first ones. A larger order is wholesale and says nothing about visitors, and each
/// item makes a pair with every other.
pub const MAX_BOUGHT_ITEMS: usize = 20;
/// Viewed items of a visitor that count: all that a session stores.
pub const MAX_VIEWED_ITEMS: usize = sessions::MAX_VIEWED_ITEMS;

/// Counts `order`, whose visitor had viewed `viewed` (newest first). Returns false if another call has counted the order,
/// within [`keys::ORDER_TTL`]. Each call has a random id, so the script recognizes its own repetition after a lost reply.
///
/// One script, because each count depends on the time of its last update, and because an order counts only once. The
/// script calls two commands per key and 8 others: 64 for an order of 3 items with 25 viewed items. The first order of a
/// half-life needs a third one per key, for its expiry.
///
/// # Errors
/// [`Error::Redis`]: the order may have been counted. The same call again is harmless. [`Error::Platform`] if the platform
/// has no random bits.
pub async fn learn(
    redis: &Redis,
    order: &Order,
    viewed: &[ItemId],
    now: Timestamp,
    config: &InsightsConfig,
) -> Result<bool, Error> {
    let HalfLife { start, length } = HalfLife::containing(now, config.half_life);
    let bought: Vec<_> = order.lines.iter().map(|line| &line.item).take(MAX_BOUGHT_ITEMS).collect();
    let layout = redis.keys();
    let mut keys = vec![layout.order(&order.id), layout.purchases(), layout.purchases_rescaled()];
    keys.extend(bought.iter().map(|item| layout.bought_together(item)));
    keys.extend(viewed.iter().take(MAX_VIEWED_ITEMS).map(|item| layout.bought_after_viewing(item)));
    let learn = Command::script(&LEARN, keys)
        .num(start)
        .num(length)
        .num(config.keep)
        .num(keys::ORDER_TTL)
        .arg(hex(&random::bytes::<8>()?))
        .args(bought.iter().map(|item| item.as_str()));
    Ok(redis.run(learn.repeatable()).await?)
}
