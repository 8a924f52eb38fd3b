//! Single calls that edgefront itself sends in other forms.

use edgefront::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{ItemId, UserId},
        redis::Redis,
        token::Token,
    },
    sessions::{self, LoginRequest, SessionTouch, TouchOutcome, touch_command},
};
use upstash_rest::Command;

/// Logs `user` in, without a label or an idempotency key.
pub async fn log_in(
    redis: &Redis,
    old_token: Option<&Token>,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Token, Error> {
    sessions::log_in(redis, &LoginRequest { user, old_token, label: None, idempotency_key: None }, now, config).await
}

/// Records one activity.
pub async fn touch(redis: &Redis, touch: &SessionTouch, config: &SessionConfig) -> Result<TouchOutcome, Error> {
    let shard = redis.keys().shard_of(&touch.token);
    Ok(redis.run::<(TouchOutcome,)>(touch_command(shard, &[touch], config)).await?.0)
}

/// The rank of `item`; 0 is the most viewed item. None if the item does not rank.
pub async fn rank(redis: &Redis, item: &ItemId) -> Result<Option<u64>, Error> {
    Ok(redis.run(Command::read("ZRANK").arg(redis.keys().ranking()).arg(item.as_str())).await?)
}
