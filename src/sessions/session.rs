//! A live session, and the check that a token has one.

use upstash_rest::Command;

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, keys::Keys, redis::Redis, token::Token},
};

/// A live session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub token: Token,
    /// `None` for a guest.
    pub user: Option<UserId>,
}

impl Session {
    /// The session of `token`, whose value in `login:` is `login_value`: a user id, or empty for a guest.
    ///
    /// `None` if the value is not a valid user id.
    pub(crate) fn from_login_value(token: &Token, login_value: &str) -> Option<Self> {
        let user = if login_value.is_empty() { None } else { Some(UserId::parse(login_value).ok()?) };
        Some(Self { token: token.clone(), user })
    }
}

/// The two reads that decide whether the session of `token` is live: its user and its last activity.
///
/// A caller sends them with its own reads in one pipeline and passes the replies to [`from_check`].
#[must_use]
pub fn check_commands(keys: Keys, token: &Token) -> [Command; 2] {
    let shard = keys.shard_of(token);
    [
        Command::read("HGET").arg(shard.login()).arg(token.as_str()),
        Command::read("ZSCORE").arg(shard.recent()).arg(token.as_str()),
    ]
}

/// The session that the replies to [`check_commands`] describe. `last_seen` is in Unix seconds.
///
/// `None` if the session has ended or was idle longer than [`SessionConfig::idle`], or if its user id is not valid.
#[must_use]
pub fn from_check(
    token: &Token,
    login_value: Option<String>,
    last_seen: Option<f64>,
    now: Timestamp,
    config: &SessionConfig,
) -> Option<Session> {
    if Timestamp::from_score(last_seen?) < now - config.idle {
        return None;
    }
    Session::from_login_value(token, &login_value?)
}

/// The session of `token`; `None` if it is not live. One pipeline of reads: only [`touch`](fn@super::touch) records
/// activity.
///
/// # Errors
/// [`Error::Redis`].
pub async fn check(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Session>, Error> {
    let (login_value, last_seen) = redis.all(&check_commands(redis.keys(), token)).await?;
    Ok(from_check(token, login_value, last_seen, now, config))
}
