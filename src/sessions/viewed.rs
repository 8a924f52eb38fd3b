//! The items that a session viewed last.

use upstash_rest::Command;

use super::{Session, check_commands, from_check};
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
/// One pipeline, because the reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_viewed_items(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Vec<ItemId>)>, Error> {
    let [user, last_seen] = check_commands(redis.keys(), token);
    let (login_value, last_seen, names): (_, _, Vec<String>) =
        redis.all(&[user, last_seen, viewed_items_command(redis.keys(), token)]).await?;
    let session = from_check(token, login_value, last_seen, now, config);
    Ok(session.map(|session| (session, parse_viewed_items(&names))))
}
