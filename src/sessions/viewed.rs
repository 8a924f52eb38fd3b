//! The items that a session viewed last.

use upstash_rest::{Command, FromReply};

use super::{Session, check_with};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, keys::Keys, redis::Redis, token::Token},
};

/// Number of viewed items that a session remembers. `touch.lua` holds the same number.
pub const MAX_VIEWED_ITEMS: usize = 25;

/// Reads the items that the session of `token` viewed last. The reply is for [`parse_viewed_items`].
#[must_use]
pub fn viewed_items_command(keys: Keys, token: &Token) -> Command {
    Command::read("ZREVRANGE").arg(keys.shard_of(token).viewed(token)).num(0).num(MAX_VIEWED_ITEMS - 1)
}

/// The items in the reply to [`viewed_items_command`], newest first.
///
/// Skips names that are not valid item ids: other code that shares this Redis may have written them.
#[must_use]
pub fn parse_viewed_items(names: &[String]) -> Vec<ItemId> {
    names.iter().filter_map(|name| ItemId::parse(name).ok()).collect()
}

/// The session of `token` and the items that it viewed last, newest first; `None` if it is not live.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_viewed_items(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Vec<ItemId>)>, Error> {
    let own = vec![viewed_items_command(redis.keys(), token)];
    let Some((session, own)) = check_with(redis, token, now, config, own).await? else { return Ok(None) };
    let (names,): (Vec<String>,) = FromReply::from_reply(own)?;
    Ok(Some((session, parse_viewed_items(&names))))
}
