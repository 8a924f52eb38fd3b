//! Log in: start a user's session under a new token.
//!
//! A login always draws a new token and ends the old session in the same step. A token that somebody planted or saw
//! before the login is worthless after it (session fixation).

use upstash_rest::Command;

use super::device::{DeviceId, DeviceLabel};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::UserId,
        keys::{IDEMPOTENCY_TTL, Keys},
        redis::Redis,
        scripts::LOG_IN,
        token::Token,
    },
};

/// How long the token of an ended session leads to the session that replaced it at a login: 600 s, for a retry.
const LOGIN_RETRY_TTL: u64 = 600;
/// The idempotency key, with the old token as its owner, under which the new token is found. No client can send this key,
/// because an idempotency key holds no space.
pub(crate) const LOGIN_RETRY_KEY: &str = "log in";

#[derive(Debug, Clone, Copy)]
pub struct LoginRequest<'a> {
    pub user: &'a UserId,
    /// The visitor's token until now. Its session ends.
    pub old_token: Option<&'a Token>,
    /// The label of the device, if known.
    pub label: Option<&'a DeviceLabel>,
    pub idempotency_key: Option<&'a str>,
}

/// Starts a session of the user and returns its token.
///
/// The old session ends, if it is live. Its views and its cart move to the new session. If the old session belongs to
/// another user, its views are deleted instead, and its cart is recorded as abandoned.
///
/// With an idempotency key, a user's login takes effect once per day. A repetition returns the same session while it is
/// live. After that, it starts a new one. A form has no such key, so for ten minutes the old token serves as one. After
/// a lost response or a double submission, the visitor returns with the old token and gets the session that now holds
/// the cart.
///
/// A script, because the owner of the old session decides the move. It is repeatable after a lost reply: the token is
/// drawn before the request, and the second execution finds nothing left to move.
///
/// A session of another layout than `SHARDS` hands its cart to a session in its own shard, so a login stays one script.
/// An ended session has nothing to hand over: the login after it starts in the layout of new sessions.
///
/// # Errors
/// [`Error::Redis`]. [`Error::Platform`] if the platform has no random bits for a token.
pub async fn log_in(
    redis: &Redis,
    request: &LoginRequest<'_>,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Token, Error> {
    let LoginRequest { user, old_token: sent_token, label, .. } = *request;
    let old_token = match sent_token {
        Some(old) if redis.keys().is_of_other_layout(old) && !leads_to_session(redis, request, old).await? => None,
        sent_token => sent_token,
    };
    let new_token = draw_token(redis.keys(), request, old_token, now)?;
    let shard = redis.keys().shard_of(&new_token);
    let mut keys = vec![
        shard.login(),
        shard.recent(),
        shard.abandoned(),
        shard.sessions(user),
        shard.devices(user),
        shard.viewed(&new_token),
        shard.cart(&new_token),
    ];
    if let Some(old) = old_token {
        keys.extend([shard.viewed(old), shard.cart(old), shard.idempotency(old.as_str(), LOGIN_RETRY_KEY)]);
    }
    // With an old token, `once:L` also serves repetitions without an idempotency key.
    let once = once(request).filter(|_| request.idempotency_key.is_some() || old_token.is_none());
    let once_ttl = once.map(|(.., ttl)| ttl).unwrap_or_default();
    keys.extend(once.map(|(owner, key, _)| shard.idempotency(owner, key)));
    // A repetition does not find a session past its maximum age.
    let max_age = config.max_age.as_secs();
    let device = format!("{} {}", DeviceId::of(&new_token), label.map_or("", DeviceLabel::as_str));
    let command = Command::script(&LOG_IN, keys)
        .arg(new_token.as_str())
        .arg(user.as_str())
        .num(now)
        .num(now - config.idle)
        .arg(old_token.map_or("", Token::as_str))
        .num(LOGIN_RETRY_TTL.min(max_age))
        .num(once_ttl.min(max_age))
        .arg(device);
    let token: String = redis.run(command.repeatable().synced()).await?;
    Token::parse(&token).ok_or(upstash_rest::Error::UnexpectedType.into())
}

/// The owner and the name of the idempotency key by which a repetition finds the session, and its time to live in
/// seconds.
fn once<'a>(request: &LoginRequest<'a>) -> Option<(&'a str, &'a str, u64)> {
    match (request.idempotency_key, request.old_token) {
        (Some(key), _) => Some((request.user.as_str(), key, IDEMPOTENCY_TTL)),
        (None, Some(old)) => Some((old.as_str(), LOGIN_RETRY_KEY, LOGIN_RETRY_TTL)),
        (None, None) => None,
    }
}

/// Returns whether the old session may be live, or an earlier attempt of this login replaced it. One pipeline of reads.
async fn leads_to_session(redis: &Redis, request: &LoginRequest<'_>, old: &Token) -> Result<bool, Error> {
    let shard = redis.keys().shard_of(old);
    let mut commands = vec![Command::read("HEXISTS").arg(shard.login()).arg(old.as_str())];
    commands.extend(once(request).map(|(owner, key, _)| Command::read("EXISTS").arg(shard.idempotency(owner, key))));
    let found: Vec<Option<u64>> = redis.all(&commands).await?;
    Ok(found.contains(&Some(1)))
}

/// Draws the token of the new session.
///
/// A script reaches the keys of one shard only. So the token is drawn for the shard of the old session, or else for the
/// shard that the idempotency key always selects.
fn draw_token(
    keys: Keys,
    request: &LoginRequest<'_>,
    old_token: Option<&Token>,
    now: Timestamp,
) -> Result<Token, Error> {
    match (old_token, once(request)) {
        (Some(old), _) => keys.draw_beside(old, now),
        (None, Some((owner, key, _))) => keys.draw_for_idempotency_key(owner, key, now),
        (None, None) => keys.draw(now),
    }
}
