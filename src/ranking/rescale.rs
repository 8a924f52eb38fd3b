//! Decays the ranking and bounds it.

use serde::Serialize;

use crate::{
    config::RankingConfig,
    ports::{error::Error, time::Timestamp},
    schema::{redis::Redis, scripts::RESCALE},
};
use upstash_rest::Command;

/// The effect of one rescale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RescaleReport {
    /// Number of times that every score was halved: once for each half-life since the last rescale. 0 if the ranking is
    /// empty.
    pub halvings: u64,
    /// Items dropped because they ranked at [`RankingConfig::keep`] or beyond.
    pub trimmed: u64,
    /// Items dropped because their views had decayed to 2⁻¹⁰ of one view.
    pub forgotten: u64,
}

/// Returns whether no item is ranked, so that there is nothing to rescale.
///
/// # Errors
/// [`Error::Redis`].
pub async fn is_empty(redis: &Redis) -> Result<bool, Error> {
    let ranked: u64 = redis.run(Command::read("EXISTS").arg(redis.keys().ranking())).await?;
    Ok(ranked == 0)
}

/// Halves all scores once for each half-life that ended since the last rescale, drops the ranks from
/// [`RankingConfig::keep`] on, and remembers the first ranks for [`movement`](super::movement()).
///
/// Safe to run twice, because the marker `rescaled:` records the half-lives that are done. Safe to miss, because the
/// next run catches up. A script, because the writes depend on the marker. The book's `ZREMRANGEBYRANK 0 -20001`
/// deleted the *most* viewed items.
///
/// # Errors
/// [`Error::Redis`]: the script has run as a whole or not at all.
pub async fn rescale(redis: &Redis, now: Timestamp, config: &RankingConfig) -> Result<RescaleReport, Error> {
    let half_life = config.half_life.as_secs().max(1);
    // The marker is a moment, not a number of half-lives: a change of RANKING_HALF_LIFE would turn a number into years
    // of decay.
    let began = now.as_secs() / half_life * half_life;
    let keys = redis.keys();
    let keys = [keys.ranking(), keys.ranking_rescaled(), keys.previous_ranking(), keys.hourly_ranks()];
    let command = Command::script(&RESCALE, keys).num(began).num(half_life).num(config.keep).num(now.as_secs());
    let (halvings, trimmed, forgotten) = redis.run(command).await?;
    Ok(RescaleReport { halvings, trimmed, forgotten })
}
