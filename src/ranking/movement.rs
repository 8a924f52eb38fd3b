//! Compares the ranking with an earlier one.

use std::collections::HashMap;

use serde::Serialize;

use super::{RankedItem, ranked_items, top_command};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::redis::Redis,
};
use upstash_rest::Command;

/// The earlier ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The ranking at the last rescale that halved.
    Rescale,
    /// The ranking about an hour ago; of a younger shop, the first that a rescale remembered.
    Hour,
}

/// The most viewed items, and their movement.
#[derive(Debug, Clone, PartialEq)]
pub struct Movement {
    pub items: Vec<RankMovement>,
    /// The Unix second of the earlier ranking. None if it is not known.
    pub since: Option<u64>,
}

/// An item of the ranking, with its earlier rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankMovement {
    #[serde(flatten)]
    pub now: RankedItem,
    /// None if the item was not among the first [`REMEMBERED_RANKS`](super::REMEMBERED_RANKS).
    pub before: Option<u64>,
}

/// The `limit` (at least 1) most viewed items, each with its rank in the earlier ranking. One pipeline, because the two
/// reads do not depend on each other.
///
/// # Errors
/// [`Error::Redis`].
pub async fn movement(redis: &Redis, limit: u32, since: Since, now: Timestamp) -> Result<Movement, Error> {
    let (keys, top) = (redis.keys(), top_command(redis.keys(), limit.max(1)));
    let (scores, before, since) = match since {
        Since::Rescale => {
            let before = Command::read("ZRANGE").arg(keys.previous_ranking()).arg("0").arg("-1");
            let (scores, before): (_, Vec<String>) = redis.all(&[top, before]).await?;
            (scores, before, None)
        }
        Since::Hour => {
            let oldest = Command::read("LINDEX").arg(keys.hourly_ranks()).arg("-1");
            let (scores, oldest): (_, Option<String>) = redis.all(&[top, oldest]).await?;
            let (second, items) = oldest.as_deref().and_then(parse_entry).unzip();
            (scores, items.unwrap_or_default(), second.filter(|second| *second <= now.as_secs()))
        }
    };
    let before: HashMap<_, _> = before.iter().map(String::as_str).zip(0..).collect();
    let with_earlier_rank = |now: RankedItem| RankMovement { before: before.get(now.item.as_str()).copied(), now };
    Ok(Movement { items: ranked_items(scores).into_iter().map(with_earlier_rank).collect(), since })
}

/// Reads an entry of `ranked:hour`: `1790000000["mug","pan"]`. None for any other text.
fn parse_entry(entry: &str) -> Option<(u64, Vec<String>)> {
    let (second, items) = entry.split_at_checked(entry.find('[')?)?;
    Some((second.parse().ok()?, serde_json::from_str(items).ok()?))
}
