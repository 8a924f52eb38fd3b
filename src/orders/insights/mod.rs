//! What orders tell: which items are bought together, and what those buy who view an item. The formulas, their sources and a
//! worked example are in `docs/insights.md`.
//!
//! - `learn` (here): counts an order, once.
//! - [`related`](self): bought also bought, and of those who viewed this.
//! - [`stats`](self): one item's figures.
//! - [`decay`]: how counts fade.
//!
//! Bounded whatever happens: one total for each of the [`InsightsConfig::keep`] items that are bought most; for each item two keys
//! that count at most 120 others and expire after ten half-lives without an order; of an order [`MOST_BOUGHT`] items count, and
//! [`MOST_VIEWED`] that its visitor viewed. Nothing ever sweeps over all keys: each is brought to the present when it is touched.

pub mod decay;

mod related;
mod stats;

pub use related::{BoughtByViewers, BoughtTogether, bought_by_viewers, bought_together};
pub use stats::{ItemStats, item_stats};

use self::decay::HalfLife;
use crate::schema::scripts::LEARN;
use crate::{
    config::InsightsConfig,
    orders::Order,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, keys},
    sessions::VIEWED_ITEMS,
    upstash::{Command, Redis},
};

/// How many items of an order count, the first ones: what a shop buys at a wholesaler's says nothing about visitors, and each item
/// more is a pair more with every other.
pub const MOST_BOUGHT: usize = 20;
/// How many items that the visitor viewed count: as many as a session remembers.
pub const MOST_VIEWED: usize = VIEWED_ITEMS;

/// Counts `order`, whose visitor had viewed `viewed` (newest first), once in [`keys::ORDER_TTL`]. False: it was counted before.
///
/// One script, since each count depends on when it was last touched, and on whether the order is new. It is 36 commands for 3 items
/// and 25 viewed ones: one for each key, and 8 others.
///
/// # Errors
/// [`Error::Redis`]; then it may have been counted, and the same call again does no harm.
pub async fn learn(
    redis: &Redis,
    order: &Order,
    viewed: &[ItemId],
    now: Timestamp,
    config: &InsightsConfig,
) -> Result<bool, Error> {
    let HalfLife { began, length } = HalfLife::of(now, config.half_life);
    let bought: Vec<_> = order.lines.iter().map(|line| &line.item).take(MOST_BOUGHT).collect();
    let layout = redis.keys();
    let mut keys = vec![layout.order(&order.id), layout.purchases(), layout.purchases_rescaled()];
    keys.extend(bought.iter().map(|item| layout.bought_together(item)));
    keys.extend(viewed.iter().take(MOST_VIEWED).map(|item| layout.bought_after_viewing(item)));
    let learn = Command::script(&LEARN, keys)
        .num(began)
        .num(length)
        .num(config.keep)
        .num(keys::ORDER_TTL)
        .args(bought.iter().map(|item| item.as_str()));
    Ok(redis.run(learn.repeatable()).await?)
}
