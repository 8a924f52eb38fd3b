//! A live session, and the check that a token has one.

use std::iter;

use upstash_rest::{Command, Reply, next_reply};

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

/// The reads that decide whether the session of `token` is live: its user, and its last activity unless the session is
/// [young](is_young).
///
/// A caller puts them first in a pipeline, then its own reads, and passes all replies to [`split_check`].
#[must_use]
pub fn check_commands(keys: Keys, token: &Token, now: Timestamp, config: &SessionConfig) -> Vec<Command> {
    let shard = keys.shard_of(token);
    let read = |command, key| Command::read(command).arg(key).arg(token.as_str());
    let last_seen = || read("ZSCORE", shard.recent());
    let last_seen = (!is_young(token, now, config)).then(last_seen);
    iter::once(read("HGET", shard.login())).chain(last_seen).collect()
}

/// The session that the replies to [`check_commands`] describe, and the replies to the caller's own reads.
///
/// A damaged key of an own read [counts as empty](empty_if_damaged), so that it does not cost the session.
///
/// # Errors
/// [`Error::Redis`], also for one of the replies.
pub fn split_check(
    replies: impl IntoIterator<Item = Result<Reply, upstash_rest::Error>>,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<(Option<Session>, Vec<Reply>), Error> {
    let mut replies = replies.into_iter();
    let login_value = next_reply(&mut replies)?;
    let last_seen = if is_young(token, now, config) { None } else { next_reply(&mut replies)? };
    let own = replies.map(empty_if_damaged).collect::<Result<_, _>>()?;
    Ok((from_check(token, login_value, last_seen, now, config), own))
}

/// Replaces the refused read of a key with a wrong type by the reply of a missing key, an empty list. Another program has
/// damaged the key.
///
/// # Errors
/// Any other error of the reply.
pub fn empty_if_damaged(reply: Result<Reply, upstash_rest::Error>) -> Result<Reply, upstash_rest::Error> {
    match reply {
        Err(upstash_rest::Error::Refused { code }) if code == "WRONGTYPE" => Ok(Reply::List(Vec::new())),
        reply => reply,
    }
}

/// The session of `token`. `login_value`: its value in `login:`. `last_seen`: its score in `recent:`, Unix seconds.
///
/// `None` if the session has ended, was idle longer than [`SessionConfig::idle`] or is past [`SessionConfig::max_age`], or
/// if its user id is not valid. Without `last_seen`, the session must be [young](is_young).
#[must_use]
pub fn from_check(
    token: &Token,
    login_value: Option<String>,
    last_seen: Option<f64>,
    now: Timestamp,
    config: &SessionConfig,
) -> Option<Session> {
    let is_live = match last_seen {
        Some(last_seen) => Timestamp::from_score(last_seen) >= now - config.idle,
        None => is_young(token, now, config),
    };
    let is_past_age = token.began() + config.max_age <= now;
    Session::from_login_value(token, &login_value.filter(|_| is_live && !is_past_age)?)
}

/// Returns whether the session of `token` began at most half of [`SessionConfig::idle`] ago. Then `login:` alone decides
/// whether it is live, and a check does not read `recent:`, because commands are billed.
///
/// The answer is that of [`from_check`], regardless of the isolates' clocks. The token and the first score in `recent:`
/// have the same moment of one clock, and scores only grow. So the last activity is not before the start, and the
/// session was not idle for longer than half of the time. Every other end deletes the login: `reap` (a logout, a
/// cleanup, the session limit) together with the score, `log_in` that of the session that it replaces, and `end_logins`
/// without the score. [`SessionConfig::max_age`] depends on the token alone.
///
/// It differs in one case: if other code has deleted or lowered the score and left the login, the session may live until
/// half of the idle time.
///
/// The bound is half of the idle time, because some scripts do not record the activity of a young session. Such a session
/// still lives for the other half, and the visitor's next page records its visit.
#[must_use]
pub fn is_young(token: &Token, now: Timestamp, config: &SessionConfig) -> bool {
    token.began() >= now - config.idle / 2
}

/// The scripts' argument for the session of `token`: its start if it [`is_young`], else empty.
///
/// For a young session, a script uses the start of the session as its last activity. So it may record an activity earlier
/// than necessary. Such a record costs one command, as the read of the last activity does.
pub(crate) fn start_if_young(token: &Token, now: Timestamp, config: &SessionConfig) -> String {
    if is_young(token, now, config) { token.began().to_string() } else { String::new() }
}

/// The session of `token`; `None` if it is not live. Only [`touch`](fn@super::touch) records activity.
///
/// # Errors
/// [`Error::Redis`].
pub async fn check(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Session>, Error> {
    Ok(check_with(redis, token, now, config, Vec::new()).await?.map(|(session, _)| session))
}

/// The session of `token`, with every change until now. A [`check`] in a read region may not know a new session.
///
/// # Errors
/// [`Error::Redis`].
pub async fn check_latest(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Session>, Error> {
    redis.catch_up().await?;
    check(redis, token, now, config).await
}

/// As [`check`]. The same pipeline runs the caller's reads `own`, whose replies come as a list if the session is live.
/// The caller reads that list: a copy of this function for each type of replies would add 2.6 KB to the Worker.
///
/// # Errors
/// [`Error::Redis`].
pub async fn check_with(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
    own: Vec<Command>,
) -> Result<Option<(Session, Reply)>, Error> {
    let mut commands = check_commands(redis.keys(), token, now, config);
    commands.extend(own);
    let (session, own) = split_check(redis.pipeline(&commands).await?, token, now, config)?;
    Ok(session.map(|session| (session, Reply::List(own))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_session_without_a_score_is_live_for_half_of_the_idle_time() {
        let (idle, began) = (Duration::from_mins(2), Timestamp::from_millis(1_795_000_000_000));
        let config = SessionConfig { signing_keys: Vec::new(), limit: 1, idle, max_age: idle * 9, view_window: idle };
        let token = Token::new(began).unwrap();
        let is_live = |login: Option<&str>, seen: Option<Timestamp>, now| {
            from_check(&token, login.map(str::to_owned), seen.map(Timestamp::as_score), now, &config).is_some()
        };
        let moment = Duration::from_millis(1);
        for (now, young, seen) in [
            (began + idle / 2, true, true),
            (began + idle / 2 + moment, false, true),
            (began + idle, false, true),
            (began + idle + moment, false, false),
            // The clock of this isolate is behind.
            (began - idle, true, true),
        ] {
            assert_eq!((is_live(Some(""), None, now), is_live(Some(""), Some(began), now)), (young, seen), "{now}");
            assert!(!is_live(None, None, now) && !is_live(None, Some(now), now), "the login has ended");
        }
        let past_age = began + config.max_age;
        assert!(is_live(Some(""), Some(past_age), past_age - moment) && !is_live(Some(""), Some(past_age), past_age));
    }
}
