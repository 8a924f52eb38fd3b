//! The popularity ranking: the sorted set `viewed:`. An item's score is its number of views, negated, so that rank 0 is
//! the most viewed item.
//!
//! Views halve every half-life (`RANKING_HALF_LIFE`), however often the cron runs. A rescale drops the ranks from
//! `RANKING_KEEP` on, which bounds the set.
//!
//! - [`activity`]: records visits and views, and writes them in batches.
//! - [`crawler`]: tells people from crawlers and prefetches.
//! - [`movement()`]: compares the ranks with earlier ones.
//! - [`rescale()`]: halves the views and trims the set.

pub mod activity;
pub mod crawler;
mod movement;
mod rescale;

use serde::Serialize;

pub use self::{
    movement::{Movement, RankMovement, Since, movement},
    rescale::{RescaleReport, is_empty, rescale},
};
use crate::{
    ports::error::Error,
    schema::{
        ids::ItemId,
        keys::{IDEMPOTENCY_TTL, Keys},
        redis::Redis,
        scripts::COUNT_ONCE,
    },
};
use upstash_rest::{Command, Pairs};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedItem {
    #[serde(rename = "id")]
    pub item: ItemId,
    /// 0 is the most viewed item.
    pub rank: u64,
    /// Decayed views, rounded to two decimals.
    pub views: f64,
}

/// A rescale remembers this many ranks. `rescale.lua` holds the same number.
pub const REMEMBERED_RANKS: u32 = 100;

/// Adds `views` to `item`. The caller knows that the item exists: its page was answered with status 200.
#[must_use]
pub fn count_command(keys: Keys, item: &ItemId, views: u32) -> Command {
    Command::write("ZINCRBY").arg(keys.ranking()).arg(format!("-{views}")).arg(item.as_str())
}

/// Adds `views` to `item` only if it ranks already. For reported views: invented ids cannot push real items out of the
/// ranking.
#[must_use]
pub fn count_if_ranked_command(keys: Keys, item: &ItemId, views: u32) -> Command {
    Command::write("ZADD").arg(keys.ranking()).arg("XX").arg("INCR").arg(format!("-{views}")).arg(item.as_str())
}

/// Adds one view to `item` if it ranks already, once a day for each idempotency `key`. A script, because the view
/// depends on the key: a retry after a lost reply is harmless.
#[must_use]
pub fn count_once_command(keys: Keys, item: &ItemId, key: &str) -> Command {
    Command::script(&COUNT_ONCE, [keys.ranking(), keys.view_idempotency(key)])
        .arg(item.as_str())
        .num(IDEMPOTENCY_TTL)
        .repeatable()
}

/// The `limit` most viewed items, best first. Leaves out members that are no [`ItemId`] (other programs wrote them);
/// their ranks stay taken.
///
/// # Errors
/// [`Error::Redis`].
pub async fn top(redis: &Redis, limit: u32) -> Result<Vec<RankedItem>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    Ok(ranked_items(redis.run(top_command(redis.keys(), limit)).await?))
}

/// Reads the first `limit` (at least 1) members with their scores.
fn top_command(keys: Keys, limit: u32) -> Command {
    Command::read("ZRANGE").arg(keys.ranking()).arg("0").num(limit.saturating_sub(1)).arg("WITHSCORES")
}

fn ranked_items(Pairs(scores): Pairs<String, f64>) -> Vec<RankedItem> {
    let ranked = (0..).zip(scores).filter_map(|(rank, (item, score))| {
        let item = ItemId::parse(&item).ok()?;
        // `0 - score`, because negating a score of 0 gives -0.
        Some(RankedItem { item, rank, views: (0.0 - score * 100.0).round() / 100.0 })
    });
    ranked.collect()
}
