//! Which items are viewed most: `viewed:`, an item's views as a negative score, so that rank 0 is the most viewed.
//!
//! Views decay by half every half-life (`RANKING_HALF_LIFE`), however often the cron runs, and ranks from `RANKING_KEEP` on
//! are dropped, which bounds the set.

pub mod activity;
pub mod crawler;

use std::collections::HashMap;

use serde::Serialize;

use crate::schema::scripts::{COUNT_ONCE, RESCALE};
use crate::{
    config::RankingConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::ItemId,
        keys::{IDEMPOTENCY_TTL, Keys},
        redis::Redis,
    },
};
use upstash_rest::{Command, Pairs};

/// An item in the ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedItem {
    #[serde(rename = "id", serialize_with = "as_text")]
    pub item: ItemId,
    /// 0 is the most viewed item.
    pub rank: u64,
    /// Views, decayed, to two decimals.
    pub views: f64,
}

/// An item in the ranking, and where it stood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankMovement {
    #[serde(flatten)]
    pub now: RankedItem,
    /// Its rank at the last rescale that halved; None if it was not among the first [`REMEMBERED`].
    pub before: Option<u64>,
}

/// So many ranks are remembered from a rescale to the next; `rescale.lua` has the number, too.
pub const REMEMBERED: u32 = 100;

fn as_text<S: serde::Serializer>(item: &ItemId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(item.as_str())
}

/// What a rescale did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RescaleReport {
    /// How often every score was halved: the half-lives that ended since the last time, 0 if the ranking is empty.
    pub halvings: u64,
    /// Items beyond the kept ranks.
    pub trimmed: u64,
    /// Items whose views have decayed to 2⁻¹⁰ of one.
    pub forgotten: u64,
}

/// Counts `views` of `item`. The caller has seen the origin answer 200 for this item.
#[must_use]
pub fn count(keys: Keys, item: &ItemId, views: u32) -> Command {
    Command::write("ZINCRBY").arg(keys.ranking()).arg(format!("-{views}")).arg(item.as_str())
}

/// Counts `views` of `item` if it ranks already: for who only claims that there is such an item. So made-up names cannot push real items
/// out.
#[must_use]
pub fn count_if_ranked(keys: Keys, item: &ItemId, views: u32) -> Command {
    Command::write("ZADD").arg(keys.ranking()).arg("XX").arg("INCR").arg(format!("-{views}")).arg(item.as_str())
}

/// As [`count_if_ranked`], one view, once in a day for an idempotency `key`: a script, which makes a retry after a lost reply harmless.
#[must_use]
pub fn count_once(keys: Keys, item: &ItemId, key: &str) -> Command {
    Command::script(&COUNT_ONCE, [keys.ranking(), keys.view_idempotency(key)])
        .arg(item.as_str())
        .num(IDEMPOTENCY_TTL)
        .repeatable()
}

/// The rank of `item`, 0 for the most viewed one; None if it does not rank.
///
/// # Errors
/// [`Error::Redis`].
pub async fn rank(redis: &Redis, item: &ItemId) -> Result<Option<u64>, Error> {
    Ok(redis.run(Command::read("ZRANK").arg(redis.keys().ranking()).arg(item.as_str())).await?)
}

/// The `limit` most viewed items. A member that is no [`ItemId`] (somebody else wrote it) is left out, and keeps its rank.
///
/// # Errors
/// [`Error::Redis`].
pub async fn top(redis: &Redis, limit: u32) -> Result<Vec<RankedItem>, Error> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    Ok(ranked(redis.run(first(redis.keys(), limit)).await?))
}

/// As [`top`], with where each item stood at the last rescale: one pipeline, since the two lists do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn movement(redis: &Redis, limit: u32) -> Result<Vec<RankMovement>, Error> {
    let before = Command::read("ZRANGE").arg(redis.keys().previous_ranking()).arg("0").arg("-1");
    let (scores, before): (_, Vec<String>) = redis.all(&[first(redis.keys(), limit.max(1)), before]).await?;
    let before: HashMap<_, _> = before.iter().map(String::as_str).zip(0..).collect();
    let moved = |now: RankedItem| RankMovement { before: before.get(now.item.as_str()).copied(), now };
    Ok(ranked(scores).into_iter().map(moved).collect())
}

/// The `limit` first, at least 1, with their scores.
fn first(keys: Keys, limit: u32) -> Command {
    Command::read("ZRANGE").arg(keys.ranking()).arg("0").num(limit.saturating_sub(1)).arg("WITHSCORES")
}

fn ranked(Pairs(scores): Pairs<String, f64>) -> Vec<RankedItem> {
    let ranked = (0..).zip(scores).filter_map(|(rank, (item, score))| {
        let item = ItemId::parse(&item).ok()?;
        // `0 -` and not `-`, since the latter makes -0 of 0.
        Some(RankedItem { item, rank, views: (0.0 - score * 100.0).round() / 100.0 })
    });
    ranked.collect()
}

/// Halves all scores once for each half-life that has ended since the last rescale, and drops the ranks from `keep` on. How the
/// first stood is remembered, so that [`movement`] can tell.
///
/// Safe to run twice (the marker `rescaled:` says which half-lives are done) and safe to miss (the next run makes up for it).
/// One script, since what is written depends on the marker; the book's `ZREMRANGEBYRANK 0 -20001` deleted the *most* viewed.
///
/// # Errors
/// [`Error::Redis`]; then nothing has changed, or all of it.
pub async fn rescale(redis: &Redis, now: Timestamp, config: &RankingConfig) -> Result<RescaleReport, Error> {
    let half_life = config.half_life.as_secs().max(1);
    // A moment and not a number of half-lives, so that another RANKING_HALF_LIFE does not turn into years of decay.
    let began = now.as_secs() / half_life * half_life;
    let keys = redis.keys();
    let command = Command::script(&RESCALE, [keys.ranking(), keys.ranking_rescaled(), keys.previous_ranking()])
        .num(began)
        .num(half_life)
        .num(config.keep);
    let (halvings, trimmed, forgotten) = redis.run(command).await?;
    Ok(RescaleReport { halvings, trimmed, forgotten })
}
