//! Log out: end one session, or all sessions of a user.

use super::reap::{ReapTarget, end_logins_command, reap};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, redis::Redis, token::Token},
};

/// Ends the session of `token` and records its cart as abandoned. A session that has ended is not an error.
///
/// # Errors
/// [`Error::Redis`].
pub async fn log_out(redis: &Redis, token: &Token, now: Timestamp, config: &SessionConfig) -> Result<(), Error> {
    reap(redis, &[ReapTarget::logged_out(redis.keys(), token)], None, now - config.idle, config).await.map(drop)
}

/// Ends all sessions of `user` and returns how many it ended.
///
/// Two requests: the first makes the tokens in every shard worthless, by a script, because a read region may not know
/// the newest. The second deletes the data of their sessions. A login between the two stays.
///
/// # Errors
/// [`Error::Redis`].
pub async fn log_out_user(redis: &Redis, user: &UserId, now: Timestamp, config: &SessionConfig) -> Result<u64, Error> {
    let calls: Vec<_> = redis.keys().shards().map(|shard| end_logins_command(shard, user, "", "all")).collect();
    let lists: Vec<Vec<String>> = redis.all(&calls).await?;
    let tokens = lists.iter().flatten().filter_map(|token| Token::parse(token));
    let targets: Vec<_> = tokens.map(|token| ReapTarget::logged_out(redis.keys(), &token)).collect();
    Ok(reap(redis, &targets, Some(user), now - config.idle, config).await?.sessions)
}
