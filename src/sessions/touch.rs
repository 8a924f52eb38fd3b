//! Notes that sessions were here, and what they looked at: one script for many, because the writes depend on the check.

use std::time::Duration;

use crate::schema::scripts::TOUCH;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, redis::Redis, shard::Shard, token::Token},
};
use upstash_rest::{Command, FromReply, Reply};

/// A session is noted as seen once in so long at most: by so much may the order in which sessions leave be wrong.
pub const TOUCH_EVERY: Duration = Duration::from_secs(10);

/// A session was here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTouch {
    pub token: Token,
    /// The item whose page it looked at, if it was one's.
    pub item: Option<ItemId>,
    pub at: Timestamp,
}

/// What came of a [`SessionTouch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchOutcome {
    /// There is no such session, and nothing was written.
    Ended,
    /// It was seen; its item, if any, is the newest of the viewed ones.
    Seen,
    /// The same, and the view counts in the ranking: the first in [`SessionConfig::view_window`].
    Counts,
    /// The same of a guest, who may have begun the session for that.
    GuestCounts,
}

impl FromReply for TouchOutcome {
    fn from_reply(reply: Reply) -> Result<Self, upstash_rest::Error> {
        Ok(match u32::from_reply(reply)? {
            0 => Self::Ended,
            1 => Self::Seen,
            2 => Self::Counts,
            _ => Self::GuestCounts,
        })
    }
}

/// The script's call for at least one sight, all of sessions of `shard`; its reply is a list of [`TouchOutcome`], one for each.
#[must_use]
pub fn touch_command(shard: Shard, sights: &[&SessionTouch], config: &SessionConfig) -> Command {
    let latest = sights.iter().map(|sight| sight.at).max().unwrap_or(Timestamp::from_millis(0));
    let viewed = sights.iter().map(|sight| shard.viewed(&sight.token));
    let command = Command::script(&TOUCH, [shard.login(), shard.recent()].into_iter().chain(viewed))
        .num(latest - config.idle)
        .num(config.view_window.as_secs())
        .num(TOUCH_EVERY.as_secs());
    sights.iter().fold(command, |command, SessionTouch { token, item, at }| {
        command.arg(token.as_str()).num(*at).arg(item.as_ref().map_or("", ItemId::as_str))
    })
}

/// Notes one session.
///
/// # Errors
/// [`Error::Redis`].
pub async fn touch(redis: &Redis, sight: &SessionTouch, config: &SessionConfig) -> Result<TouchOutcome, Error> {
    let shard = redis.keys().shard_of(&sight.token);
    let noted: Vec<TouchOutcome> = redis.run(touch_command(shard, &[sight], config)).await?;
    Ok(noted.first().copied().ok_or(upstash_rest::Error::UnexpectedType)?)
}
