//! Lists the devices of a user.

use upstash_rest::Command;

use super::{
    super::{check, from_check},
    DeviceLabel,
};
use crate::{
    config::SessionConfig,
    ports::{error::Error, sort, time::Timestamp},
    schema::{ids::UserId, redis::Redis, scripts::DEVICES, shard::Shard, token::Token},
};

/// Number of devices of a user that are listed. `devices.lua` holds the same number.
const MAX_LISTED_DEVICES: usize = 100;

/// A live session, as its user sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub token: Token,
    pub last_seen: Timestamp,
    /// `None` if the login named no browser, and for a guest.
    pub label: Option<DeviceLabel>,
}

/// The live sessions of the user who owns the session of `token`: the latest logins first, 100 at most.
///
/// A guest has one session. The list is empty if the session of `token` is not live.
///
/// # Errors
/// [`Error::Redis`].
pub async fn list_devices(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Vec<Device>, Error> {
    let Some(session) = check(redis, token, now, config).await? else { return Ok(Vec::new()) };
    let mut devices = match session.user {
        Some(user) => devices_of_user(redis, &user, now, config).await?,
        None => Vec::new(),
    };
    // A session without an entry in the user's list: a guest's, or one that other code of the book wrote.
    if devices.iter().all(|device| device.token != *token) {
        let read = Command::read("ZSCORE").arg(redis.keys().shard_of(token).recent()).arg(token.as_str());
        let last_seen: Option<f64> = redis.run(read).await?;
        let last_seen = last_seen.map_or_else(|| token.began(), Timestamp::from_score);
        devices.insert(0, Device { token: token.clone(), last_seen, label: None });
    }
    Ok(devices)
}

/// The token of the live session of `user` that began last; `None` if no session is live.
///
/// # Errors
/// [`Error::Redis`].
pub async fn latest_login(
    redis: &Redis,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Token>, Error> {
    Ok(devices_of_user(redis, user, now, config).await?.into_iter().next().map(|device| device.token))
}

/// One entry of the reply of `devices.lua`: token, last activity (Unix seconds), value in `devices:`, login (Unix
/// seconds).
type DeviceReply = (String, f64, String, f64);

/// The live sessions of `user`, the latest logins first, 100 at most.
///
/// One script per shard, in one pipeline. A script, so that a concurrent login or logout is visible completely or not
/// at all.
///
/// # Errors
/// [`Error::Redis`].
pub async fn devices_of_user(
    redis: &Redis,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Vec<Device>, Error> {
    let list = |shard: Shard| {
        let keys = [shard.login(), shard.recent(), shard.sessions(user), shard.devices(user)];
        Command::script(&DEVICES, keys).arg(user.as_str()).repeatable()
    };
    let lists: Vec<Vec<DeviceReply>> = redis.all(&redis.keys().shards().map(list).collect::<Vec<_>>()).await?;
    let mut replies: Vec<_> = lists.into_iter().flatten().collect();
    sort::sort_by(&mut replies, |(.., login), (.., other_login)| other_login.total_cmp(login));
    replies.truncate(MAX_LISTED_DEVICES);
    let device = |(token, last_seen, value, _): DeviceReply| {
        let token = Token::parse(&token)?;
        from_check(&token, Some(user.to_string()), Some(last_seen), now, config)?;
        let label = value.split_once(' ').and_then(|(_, label)| DeviceLabel::parse(label).ok());
        Some(Device { token, last_seen: Timestamp::from_score(last_seen), label })
    };
    Ok(replies.into_iter().filter_map(device).collect())
}
