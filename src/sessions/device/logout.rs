//! Ends devices of a user. The response waits for the end of their logins; their carts and views are deleted after it.

use super::{
    super::{
        Session, check_latest, log_out,
        reap::{end, end_logins},
    },
    DeviceId,
};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, redis::Redis, token::Token},
};

/// Which devices to log out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelection {
    One(DeviceId),
    /// All except the session that asks.
    Others,
    All,
}

/// Sessions whose logins have ended. [`EndedSessions::delete_data`] deletes the rest of their data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSessions {
    /// The session that asked is among them.
    pub includes_current: bool,
    /// `None` for a guest, whose session has no data left.
    user: Option<UserId>,
    tokens: Vec<Token>,
}

/// Ends the logins of the selected devices of the user who owns the session of `token`.
///
/// `None` if there is no such device, or if the session of `token` is not live.
///
/// # Errors
/// [`Error::Redis`]. The call is safe to repeat.
pub async fn log_out_devices(
    redis: &Redis,
    token: &Token,
    selection: &DeviceSelection,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<EndedSessions>, Error> {
    // A logout that is answered must have ended the session.
    let Some(Session { user, .. }) = check_latest(redis, token, now, config).await? else { return Ok(None) };
    let is_current = *selection == DeviceSelection::One(DeviceId::of(token));
    let Some(user) = user else {
        let includes_current = is_current || *selection == DeviceSelection::All;
        if includes_current {
            log_out(redis, token, now, config).await?;
        }
        let is_found = includes_current || *selection == DeviceSelection::Others;
        return Ok(is_found.then_some(EndedSessions { includes_current, user: None, tokens: Vec::new() }));
    };
    let argument = match selection {
        DeviceSelection::All => "all",
        DeviceSelection::Others => "others",
        // Not by id, because a login that other code of the book wrote has none in `devices:`.
        DeviceSelection::One(_) if is_current => "own",
        DeviceSelection::One(id) => id.as_str(),
    };
    let tokens = end_logins(redis, &user, Some(token), argument).await?;
    if tokens.is_empty() && matches!(selection, DeviceSelection::One(_)) {
        return Ok(None);
    }
    Ok(Some(EndedSessions { includes_current: tokens.contains(token), user: Some(user), tokens }))
}

impl EndedSessions {
    /// Deletes the data of these sessions and records their carts as abandoned.
    ///
    /// If it fails, the cleanup does the same once their idle time is over.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn delete_data(&self, redis: &Redis, now: Timestamp, config: &SessionConfig) -> Result<(), Error> {
        end(redis, &self.tokens, self.user.as_ref(), now, config).await.map(drop)
    }
}
