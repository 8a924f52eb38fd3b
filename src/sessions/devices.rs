//! The devices of a user: each is a session, which any of the others may end. Only the first request tells whose the session is
//! that asks, and the keys of a script must be known before it runs: so each of these calls takes two.

use super::{
    Session, check, check_commands,
    device::{DeviceId, DeviceLabel},
    from_check, log_out,
    reap::{Victim, reap},
};
use crate::schema::scripts::{DEVICES, END_LOGINS};
use crate::{
    config::SessionConfig,
    ports::{error::Error, sort, time::Timestamp},
    schema::{ids::UserId, redis::Redis, shard::Shard, token::Token},
};
use upstash_rest::Command;

/// So many sessions of a user are listed; `devices.lua` has the number, too.
const MOST: usize = 100;

/// A living session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub token: Token,
    pub seen: Timestamp,
    /// None if nothing is known of the browser that logged in, and for a guest.
    pub label: Option<DeviceLabel>,
}

/// Which sessions to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelection {
    One(DeviceId),
    /// All but the one that asks.
    Others,
    All,
}

/// Logins that have ended. Their carts and views are still to be cleared away, which nobody needs to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSessions {
    /// The session that asked is among them.
    pub current: bool,
    user: Option<UserId>,
    tokens: Vec<Token>,
}

/// The sessions of whose session `token` is, newest login first and [`MOST`] at most; a guest has that one. Empty if it does not
/// live.
///
/// # Errors
/// [`Error::Redis`].
pub async fn devices(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Vec<Device>, Error> {
    let (user, seen): (_, Option<f64>) = redis.all(&check_commands(redis.keys(), token)).await?;
    let Some(session) = from_check(token, user, seen, now, config) else { return Ok(Vec::new()) };
    let mut devices = match session.user {
        Some(user) => of_user(redis, &user, now, config).await?,
        None => Vec::new(),
    };
    // Who asks is there in any case: guests have no list, and other code of the book writes none.
    if devices.iter().all(|device| device.token != *token) {
        let seen = Timestamp::from_score(seen.unwrap_or_default());
        devices.insert(0, Device { token: token.clone(), seen, label: None });
    }
    Ok(devices)
}

/// The living session of `user` that began last; None if there is none.
///
/// # Errors
/// [`Error::Redis`].
pub async fn newest(
    redis: &Redis,
    user: &UserId,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<Token>, Error> {
    Ok(of_user(redis, user, now, config).await?.into_iter().next().map(|device| device.token))
}

/// What `devices.lua` says of a session.
type Found = (String, f64, String, f64);

/// One script for each shard, so that who logs in and out meanwhile is there with all or not at all.
async fn of_user(redis: &Redis, user: &UserId, now: Timestamp, config: &SessionConfig) -> Result<Vec<Device>, Error> {
    let list = |shard: Shard| {
        let keys = [shard.login(), shard.recent(), shard.sessions(user), shard.devices(user)];
        Command::script(&DEVICES, keys).arg(user.as_str()).repeatable()
    };
    let lists: Vec<Vec<Found>> = redis.all(&redis.keys().shards().map(list).collect::<Vec<_>>()).await?;
    let mut found: Vec<_> = lists.into_iter().flatten().collect();
    sort::sort_by(&mut found, |(.., one), (.., other)| other.total_cmp(one));
    found.truncate(MOST);
    let device = |(token, seen, value, _): Found| {
        let token = Token::parse(&token)?;
        from_check(&token, Some(user.to_string()), Some(seen), now, config)?;
        let label = value.split_once(' ').and_then(|(_, label)| DeviceLabel::parse(label).ok());
        Some(Device { token, seen: Timestamp::from_score(seen), label })
    };
    Ok(found.into_iter().filter_map(device).collect())
}

/// Ends sessions of whose session `token` is: their logins now, the rest by [`EndedSessions::clear_away`]. None if there is no such
/// session, or `token`'s own does not live.
///
/// # Errors
/// [`Error::Redis`]; the same call again does what is left to do.
pub async fn log_out_devices(
    redis: &Redis,
    token: &Token,
    which: &DeviceSelection,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<EndedSessions>, Error> {
    let Some(Session { user, .. }) = check(redis, token, now, config).await? else { return Ok(None) };
    let is_own = *which == DeviceSelection::One(DeviceId::of(token));
    let Some(user) = user else {
        let current = is_own || *which == DeviceSelection::All;
        if current {
            log_out(redis, token, now, config).await?;
        }
        let found = current || *which == DeviceSelection::Others;
        return Ok(found.then_some(EndedSessions { current, user: None, tokens: Vec::new() }));
    };
    let device = match which {
        DeviceSelection::All => "all",
        DeviceSelection::Others => "others",
        // A login that other code of the book wrote has no id in `devices:`.
        DeviceSelection::One(_) if is_own => "own",
        DeviceSelection::One(id) => id.as_str(),
    };
    let own_shard = redis.keys().shard_of(token);
    let end = |shard: Shard| {
        let keys = [shard.login(), shard.sessions(&user), shard.devices(&user)];
        let own = if shard == own_shard { token.as_str() } else { "" };
        Command::script(&END_LOGINS, keys).args([user.as_str(), own, device]).repeatable()
    };
    let shards: Vec<_> = redis.keys().shards().filter(|shard| !is_own || *shard == own_shard).map(end).collect();
    let tokens: Vec<Vec<String>> = redis.all(&shards).await?;
    let tokens: Vec<_> = tokens.iter().flatten().filter_map(|token| Token::parse(token)).collect();
    if tokens.is_empty() && matches!(which, DeviceSelection::One(_)) {
        return Ok(None);
    }
    Ok(Some(EndedSessions { current: tokens.contains(token), user: Some(user), tokens }))
}

impl EndedSessions {
    /// Clears away what is stored of these sessions; their carts are recorded as abandoned. If it fails, the cleaning does it when
    /// their idle time is over.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn clear_away(&self, redis: &Redis, now: Timestamp, config: &SessionConfig) -> Result<(), Error> {
        let victims: Vec<_> = self.tokens.iter().map(|token| Victim::logged_out(redis.keys(), token)).collect();
        reap(redis, &victims, self.user.as_ref(), now - config.idle, config).await.map(drop)
    }
}
