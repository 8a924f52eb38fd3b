//! Whose piece it is. A script finds that in the session by itself, at the moment in which it decides, where the session's keys
//! are in the slot of the sale's. In the sharded layout they are not: it is looked up before, for one request more. A session that
//! ends between the two is one that ended just after.

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, keys::Keys, redis::Redis, token::Token},
    sessions,
};
use upstash_rest::Command;

/// The buyer, as far as it is known before the script runs.
pub(super) enum Buyer<'a> {
    /// The user of this session, if it is live.
    Session(&'a Token),
    User(&'a Token, UserId),
    Nobody,
}

impl<'a> Buyer<'a> {
    /// # Errors
    /// [`Error::Redis`].
    pub async fn find(
        redis: &Redis,
        token: Option<&'a Token>,
        now: Timestamp,
        config: &SessionConfig,
    ) -> Result<Self, Error> {
        let Some(token) = token else { return Ok(Self::Nobody) };
        if !redis.keys().is_sharded() {
            return Ok(Self::Session(token));
        }
        let user = sessions::check(redis, token, now, config).await?.and_then(|session| session.user);
        Ok(user.map_or(Self::Nobody, |user| Self::User(token, user)))
    }

    /// The scripts' argument `who`.
    pub fn name(&self) -> &str {
        match self {
            Self::Session(token) => token.as_str(),
            Self::User(_, user) => user.as_str(),
            Self::Nobody => "",
        }
    }

    /// The scripts' keys `login:` and `recent:`, where they tell whose session it is.
    pub fn keys(&self, keys: Keys) -> Vec<String> {
        match self {
            Self::Session(token) => {
                let shard = keys.shard_of(token);
                vec![shard.login(), shard.recent()]
            }
            Self::User(..) | Self::Nobody => Vec::new(),
        }
    }

    /// Notes that they were seen, where the script cannot. XX: who logged out meanwhile does not come back by it.
    pub fn seen(&self, keys: Keys, now: Timestamp) -> Option<Command> {
        let Self::User(token, _) = self else { return None };
        let seen = Command::write("ZADD").arg(keys.shard_of(token).recent()).args(["XX", "GT"]);
        Some(seen.num(now).arg(token.as_str()).repeatable())
    }
}
