//! Log out: end one session, or all sessions of a user.

use std::slice;

use super::reap::{end, end_logins};
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
    end(redis, slice::from_ref(token), None, now, config).await.map(drop)
}

/// Ends all sessions of `user` and returns how many it ended.
///
/// Two requests: the first makes the tokens in every shard worthless, by a script, because a read region may not know
/// the newest. The second deletes the data of their sessions. A login between the two stays.
///
/// # Errors
/// [`Error::Redis`].
pub async fn log_out_user(redis: &Redis, user: &UserId, now: Timestamp, config: &SessionConfig) -> Result<u64, Error> {
    let tokens = end_logins(redis, user, None, "all").await?;
    end(redis, &tokens, Some(user), now, config).await
}
