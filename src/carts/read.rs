//! Reads a session and its cart.

use upstash_rest::{Command, FromReply};

use super::Cart;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, keys::Keys, redis::Redis, token::Token},
    sessions::{self, Session},
};

/// Reads the cart of the session of `token`. The reply is for [`Cart::from_pairs`].
#[must_use]
pub fn read_command(keys: Keys, token: &Token) -> Command {
    Command::read("HGETALL").arg(keys.shard_of(token).cart(token))
}

/// The session of `token` and its cart; `None` if the session is not live.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Cart)>, Error> {
    let own = vec![read_command(redis.keys(), token)];
    let Some((session, own)) = sessions::check_with(redis, token, now, config, own).await? else { return Ok(None) };
    let (cart,) = FromReply::from_reply(own)?;
    Ok(Some((session, Cart::from_pairs(cart))))
}

/// As [`read`], with the items that the session viewed last, newest first.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read_with_viewed_items(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Cart, Vec<ItemId>)>, Error> {
    let keys = redis.keys();
    let own = vec![read_command(keys, token), sessions::viewed_items_command(keys, token)];
    let Some((session, own)) = sessions::check_with(redis, token, now, config, own).await? else { return Ok(None) };
    let (cart, viewed): (_, Vec<String>) = FromReply::from_reply(own)?;
    Ok(Some((session, Cart::from_pairs(cart), sessions::parse_viewed_items(&viewed))))
}
