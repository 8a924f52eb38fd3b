//! Reads a session and its cart.

use upstash_rest::Command;

use super::Cart;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, keys::Keys, redis::Redis, token::Token},
    sessions::{self, Session},
};

/// The three reads of [`read`]: those of [`sessions::check_commands`], and the cart.
///
/// A caller sends them with its own reads in one pipeline.
#[must_use]
pub fn read_commands(keys: Keys, token: &Token) -> [Command; 3] {
    let [user, last_seen] = sessions::check_commands(keys, token);
    [user, last_seen, Command::read("HGETALL").arg(keys.shard_of(token).cart(token))]
}

/// The session of `token` and its cart; `None` if the session is not live.
///
/// One pipeline, because the reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Cart)>, Error> {
    let (login_value, last_seen, cart) = redis.all(&read_commands(redis.keys(), token)).await?;
    let session = sessions::from_check(token, login_value, last_seen, now, config);
    Ok(session.map(|session| (session, Cart::from_pairs(cart))))
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
    let [user, last_seen, cart] = read_commands(redis.keys(), token);
    let commands = [user, last_seen, cart, sessions::viewed_items_command(redis.keys(), token)];
    let (login_value, last_seen, cart, viewed): (_, _, _, Vec<String>) = redis.all(&commands).await?;
    let session = sessions::from_check(token, login_value, last_seen, now, config);
    Ok(session.map(|session| (session, Cart::from_pairs(cart), sessions::parse_viewed_items(&viewed))))
}
