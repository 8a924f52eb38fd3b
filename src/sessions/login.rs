//! Log in and log out. A login always draws a new token and ends the old one in the same step: a token that somebody planted
//! or saw before the login is worth nothing after it.

use super::{
    device::{DeviceId, DeviceLabel},
    reap::{Victim, reap},
};
use crate::schema::scripts::LOG_IN;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, keys::IDEMPOTENCY_TTL, shard::Shard, token::Token},
    upstash::{self, Command, Redis},
};

/// How long the token of an ended session leads to the one that followed it, in seconds: ten minutes, for a retry.
const RETRY_TTL: u64 = 600;

/// Starts a session of `user` and returns its token. The session `old`, if it lives, ends; what it viewed and what is in
/// its cart move to the new one, unless it belonged to another user (then its cart is recorded as abandoned).
///
/// A script, because what moves depends on whose the old session was. It may be sent twice after a lost reply: the token is
/// drawn here, and the second time there is nothing left to move.
///
/// # Errors
/// [`Error::Redis`], and [`Error::Platform`] if there are no random bits for a token.
pub async fn log_in(
    redis: &Redis,
    old: Option<&Token>,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Token, Error> {
    log_in_once(redis, old, user, None, None, now, config).await
}

/// Like [`log_in`], from a device that has a `label`. With an idempotency `key` a user's login is executed once in a day, and
/// again it finds the same session, as long as that lives.
///
/// A form has no such key; there `old` is one for ten minutes. For a visitor whose answer was lost, or who pressed twice, comes back with the
/// token of a session that has ended, whose cart lies in the session that they never heard of.
///
/// # Errors
/// As [`log_in`].
pub async fn log_in_once(
    redis: &Redis,
    old: Option<&Token>,
    user: &UserId,
    label: Option<&DeviceLabel>,
    key: Option<&str>,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Token, Error> {
    let layout = redis.keys();
    // All that one script needs is in one shard: that of the session which ends, or else the one that the key always leads to.
    let shard = match (old, key) {
        (Some(old), _) => Some(layout.shard_of(old)),
        (None, Some(key)) => Some(layout.shard_of_idempotency_key(user.as_str(), key)),
        (None, None) => None,
    };
    let new = shard
        .map_or_else(|| Token::new(now), |shard| Token::new_in_shard(shard.number(), layout.shard_count(), now))?;
    let shard = layout.shard_of(&new);
    let mut keys = vec![
        shard.login(),
        shard.recent(),
        shard.abandoned(),
        shard.sessions(user),
        shard.devices(user),
        shard.viewed(&new),
        shard.cart(&new),
    ];
    if let Some(old) = old {
        keys.extend([shard.viewed(old), shard.cart(old)]);
    }
    let once = match (key, old) {
        (Some(key), _) => Some((shard.idempotency(user.as_str(), key), IDEMPOTENCY_TTL)),
        // No client can send this key: theirs have no space.
        (None, Some(old)) => Some((shard.idempotency(old.as_str(), "log in"), RETRY_TTL)),
        (None, None) => None,
    };
    let (once, once_ttl) = once.unzip();
    keys.extend(once);
    let log_in = Command::script(&LOG_IN, keys)
        .arg(new.as_str())
        .arg(user.as_str())
        .num(now)
        .num(now - config.idle)
        .num(config.max_age.as_secs())
        .arg(old.map_or("", Token::as_str))
        .num(once_ttl.unwrap_or_default())
        .arg(format!("{} {}", DeviceId::of(&new), label.map_or("", DeviceLabel::as_str)));
    let token: String = redis.run(log_in.repeatable()).await?;
    Token::parse(&token).ok_or(upstash::Error::UnexpectedType.into())
}

/// Ends the session of `token`; its cart is recorded as abandoned. That it did not live is no error.
///
/// # Errors
/// [`Error::Redis`].
pub async fn log_out(redis: &Redis, token: &Token, now: Timestamp, config: &SessionConfig) -> Result<(), Error> {
    reap(redis, &[Victim::logged_out(redis.keys(), token)], None, now - config.idle, config).await.map(drop)
}

/// Ends all sessions of `user` and returns how many there were.
///
/// Two requests: the list (of every shard), and the end of what is in it. A login that comes between the two stays.
///
/// # Errors
/// [`Error::Redis`].
pub async fn log_out_user(redis: &Redis, user: &UserId, now: Timestamp, config: &SessionConfig) -> Result<u64, Error> {
    let list = |shard: Shard| Command::read("ZRANGE").arg(shard.sessions(user)).num(0).num(-1);
    let lists: Vec<Vec<String>> = redis.all(&redis.keys().shards().map(list).collect::<Vec<_>>()).await?;
    let tokens = lists.iter().flatten().filter_map(|token| Token::parse(token));
    let victims: Vec<_> = tokens.map(|token| Victim::logged_out(redis.keys(), &token)).collect();
    Ok(reap(redis, &victims, Some(user), now - config.idle, config).await?.sessions)
}
