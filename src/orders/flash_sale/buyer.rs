//! The buyer of a piece. In the book's layout a script reads the user from the session at the moment of its decision.
//! The keys of a session in another shard are in another slot than the sale's, so the user is looked up first, for one
//! more request. A session that ends between the two requests counts as one that ended just after them.

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, keys::Keys, redis::Redis, token::Token},
    sessions,
};
use upstash_rest::Command;

/// The buyer, as far as it is known before the script runs.
pub(super) enum Buyer<'a> {
    /// The user of this session, if it is live: the script finds out.
    Session {
        token: &'a Token,
        /// [`sessions::is_young`]: the script does not read `recent:`, and records no activity.
        is_young: bool,
    },
    User(&'a Token, UserId),
    Nobody,
}

impl<'a> Buyer<'a> {
    /// The buyer with the session `token`. One pipeline if the session is in another slot than the
    /// sale, otherwise no request.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn resolve(
        redis: &Redis,
        token: Option<&'a Token>,
        now: Timestamp,
        config: &SessionConfig,
    ) -> Result<Self, Error> {
        let Some(token) = token else { return Ok(Self::Nobody) };
        if redis.keys().reaches_shared(token) {
            return Ok(Self::Session { token, is_young: sessions::is_young(token, now, config) });
        }
        let user = sessions::check(redis, token, now, config).await?.and_then(|session| session.user);
        Ok(user.map_or(Self::Nobody, |user| Self::User(token, user)))
    }

    /// The scripts' argument: a token if [`Buyer::session_keys`] are passed too, else a user; empty for nobody.
    pub fn argument(&self) -> &str {
        match self {
            Self::Session { token, .. } => token.as_str(),
            Self::User(_, user) => user.as_str(),
            Self::Nobody => "",
        }
    }

    /// `login:` and, unless the session is young, `recent:`. By these keys a script finds the user of a session. Empty if
    /// the user is known.
    pub fn session_keys(&self, keys: Keys) -> Vec<String> {
        match self {
            Self::Session { token, is_young } => {
                let shard = keys.shard_of(token);
                let recent = (!is_young).then(|| shard.recent());
                [shard.login()].into_iter().chain(recent).collect()
            }
            Self::User(..) | Self::Nobody => Vec::new(),
        }
    }

    /// Records the visit in `recent:` where the script cannot. XX prevents the revival of a session that logged out
    /// meanwhile.
    pub fn touch_command(&self, keys: Keys, now: Timestamp) -> Option<Command> {
        let Self::User(token, _) = self else { return None };
        let touch = Command::write("ZADD").arg(keys.shard_of(token).recent()).args(["XX", "GT"]);
        Some(touch.num(now).arg(token.as_str()).repeatable())
    }
}
