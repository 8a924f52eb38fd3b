//! Login tokens: check, touch, log in, log out, expire. A session lives as long as `login:` names its token and `recent:`
//! saw it within the idle time; whoever writes for a session checks that in the same script, so a session that has ended
//! cannot come back by a slow request.
//!
//! - [`cookie`]: the token as a browser holds it, signed.
//! - `login`: log in (a new token, the cart comes along), log out of one session or of all.
//! - `devices`: the sessions of one user, as that user sees and ends them; [`device`]: what each is called.
//! - `clean`: end what has expired, and what is over the cap, oldest first.
//! - `reap`: how a session ends, whoever ends it.
//! - `touch`: who was here, many at once.

pub mod cookie;
pub mod device;

mod clean;
mod devices;
mod login;
mod reap;
mod touch;

pub use clean::{CleanupProbe, CleanupReport, clean};
pub use cookie::Keyring;
pub use devices::{Device, DeviceSelection, EndedSessions, devices, log_out_devices, newest};
pub use login::{log_in, log_in_once, log_out, log_out_user};
pub use touch::{SessionTouch, TOUCH_EVERY, TouchOutcome, touch, touch_command};

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{ItemId, UserId},
        keys::Keys,
        redis::Redis,
        token::Token,
    },
};
use upstash_rest::Command;

/// How many items a session remembers as last viewed.
pub const VIEWED_ITEMS: usize = 25;

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub token: Token,
    /// None for a guest's session.
    pub user: Option<UserId>,
}

/// The two reads that tell whether a session lives, for [`from_check`]: a caller puts them beside its own in one pipeline.
#[must_use]
pub fn check_commands(keys: Keys, token: &Token) -> [Command; 2] {
    let shard = keys.shard_of(token);
    [
        Command::read("HGET").arg(shard.login()).arg(token.as_str()),
        Command::read("ZSCORE").arg(shard.recent()).arg(token.as_str()),
    ]
}

/// The session that the replies to [`check_commands`] describe. `seen` is in Unix seconds.
///
/// None if it was logged out, was not seen for the idle time, or is stored in a way that nothing of ours writes.
#[must_use]
pub fn from_check(
    token: &Token,
    user: Option<String>,
    seen: Option<f64>,
    now: Timestamp,
    config: &SessionConfig,
) -> Option<Session> {
    if Timestamp::from_score(seen?) < now - config.idle {
        return None;
    }
    from_login(token, &user?)
}

/// The session of a token whose `login:` value is `user`.
pub(crate) fn from_login(token: &Token, user: &str) -> Option<Session> {
    let user = if user.is_empty() { None } else { Some(UserId::parse(user).ok()?) };
    Some(Session { token: token.clone(), user })
}

/// The session of `token`; None if it does not live. It stays as it is: only [`touch`] says that somebody was here.
///
/// # Errors
/// [`Error::Redis`].
pub async fn check(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Session>, Error> {
    let (user, seen) = redis.all(&check_commands(redis.keys(), token)).await?;
    Ok(from_check(token, user, seen, now, config))
}

/// Reads what was last viewed with `token`, for [`viewed_items`]: a caller puts it beside its own in one pipeline.
#[must_use]
pub fn viewed_command(keys: Keys, token: &Token) -> Command {
    Command::read("ZREVRANGE").arg(keys.shard_of(token).viewed(token)).num(0).num(VIEWED_ITEMS - 1)
}

/// The items of the reply to [`viewed_command`], newest first. What other code of the book put there need not be an item of ours.
#[must_use]
pub fn viewed_items(members: &[String]) -> Vec<ItemId> {
    members.iter().filter_map(|item| ItemId::parse(item).ok()).collect()
}

/// The session and its last viewed items, newest first; None if it does not live. One pipeline: the reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn recent_items(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Vec<ItemId>)>, Error> {
    let [user, seen] = check_commands(redis.keys(), token);
    let (user, seen, members): (_, _, Vec<String>) =
        redis.all(&[user, seen, viewed_command(redis.keys(), token)]).await?;
    Ok(from_check(token, user, seen, now, config).map(|session| (session, viewed_items(&members))))
}
