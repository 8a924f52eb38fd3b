//! Deletes the data of ended sessions.
//!
//! The script `reap` ends every session, except the one that a login replaces: `log_in` ends that. It deletes token,
//! last activity, views and cart in one step, so there is never a login that the cleanup cannot see.
//!
//! The script updates the lists of a user (`sessions:`, `devices:`) only if the caller knows the user, as a logout of
//! all sessions does. Otherwise the lists may name ended sessions, until they expire with the maximum age of the last
//! login. For the cleanup, an update would cost one more request per batch and two more calls per session.

use upstash_rest::Command;

use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::UserId,
        keys::Keys,
        redis::Redis,
        scripts::{END_LOGINS, REAP},
        shard::Shard,
        token::Token,
    },
};

/// Number of sessions that one call of the script ends. The call blocks Redis for 1 to 2 ms if each session has a cart.
pub(super) const SESSIONS_PER_CALL: usize = 100;

/// A session to end.
pub(super) struct ReapTarget {
    shard: Shard,
    viewed_key: String,
    cart_key: String,
    /// The score in `recent:` as Redis wrote it. The script spares a session whose score has changed. Empty: end it in
    /// any case.
    expected_score: String,
    /// By that score the session is idle, so it ends even below the limit.
    is_idle: bool,
}

impl ReapTarget {
    /// A session that ends if its score is still `score`. `None` if `member` is empty, because no token is empty.
    pub fn expired(shard: Shard, member: &str, score: String, is_idle: bool) -> Option<Self> {
        let (viewed_key, cart_key) = shard.viewed_and_cart(member)?;
        Some(Self { shard, viewed_key, cart_key, expected_score: score, is_idle })
    }

    /// A session that ends in any case.
    fn logged_out(keys: Keys, token: &Token) -> Self {
        let shard = keys.shard_of(token);
        let (viewed_key, cart_key) = (shard.viewed(token), shard.cart(token));
        Self { shard, viewed_key, cart_key, expected_score: String::new(), is_idle: false }
    }
}

/// The number of sessions ended, and of carts recorded in `abandoned:`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReapCounts {
    pub sessions: u64,
    pub carts: u64,
}

impl ReapCounts {
    /// Adds up the replies to [`reap_commands`].
    pub fn sum(replies: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let add = |sum: Self, (sessions, carts)| Self { sessions: sum.sessions + sessions, carts: sum.carts + carts };
        replies.into_iter().fold(Self::default(), add)
    }
}

/// Makes tokens of `user` worthless in every shard, and returns them. [`end`] then deletes the data of their sessions.
/// `selection` is the script's argument, and `own` the caller's token.
///
/// # Errors
/// [`Error::Redis`]. The call is safe to repeat.
pub(super) async fn end_logins(
    redis: &Redis,
    user: &UserId,
    own: Option<&Token>,
    selection: &str,
) -> Result<Vec<Token>, Error> {
    let of_own = own.map(|own| redis.keys().shard_of(own));
    let call = |shard: Shard| {
        let own = own.filter(|_| of_own == Some(shard)).map_or("", Token::as_str);
        let keys = [shard.login(), shard.sessions(user), shard.devices(user)];
        Command::script(&END_LOGINS, keys).args([user.as_str(), own, selection]).repeatable().synced()
    };
    let shards = redis.keys().shards().filter(|shard| selection != "own" || of_own == Some(*shard));
    let tokens: Vec<Vec<String>> = redis.all(&shards.map(call).collect::<Vec<_>>()).await?;
    Ok(tokens.iter().flatten().filter_map(|token| Token::parse(token)).collect())
}

/// Ends the sessions of `tokens` in any case, in one request; no tokens cost no request. If all are of one `user`,
/// removes them from the user's lists. Returns how many sessions it ended.
///
/// # Errors
/// [`Error::Redis`].
pub(super) async fn end(
    redis: &Redis,
    tokens: &[Token],
    user: Option<&UserId>,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<u64, Error> {
    let targets: Vec<_> = tokens.iter().map(|token| ReapTarget::logged_out(redis.keys(), token)).collect();
    let calls = reap_commands(&targets, user, now - config.idle, config.limit);
    Ok(ReapCounts::sum(redis.all::<Vec<(u64, u64)>>(&calls).await?).sessions)
}

/// The script calls that end `targets`, for one pipeline. `limit` is the largest number of sessions in their
/// shard. Each replies with sessions ended and carts recorded.
///
/// A call is repeatable after a lost reply: the second execution does not find the sessions that the first ended.
pub(super) fn reap_commands(
    targets: &[ReapTarget],
    user: Option<&UserId>,
    idle_cutoff: Timestamp,
    limit: u64,
) -> Vec<Command> {
    let mut targets_by_shard = Vec::<(Shard, Vec<&ReapTarget>)>::new();
    for target in targets {
        match targets_by_shard.iter_mut().find(|(shard, _)| *shard == target.shard) {
            Some((_, targets)) => targets.push(target),
            None => targets_by_shard.push((target.shard, vec![target])),
        }
    }
    let calls = targets_by_shard.iter().flat_map(|(shard, targets)| {
        let no_lists = || [shard.absent_list(), shard.absent_list()];
        let lists = user.map_or_else(no_lists, |user| [shard.sessions(user), shard.devices(user)]);
        let shared_keys =
            [shard.recent(), shard.login(), shard.abandoned()].into_iter().chain(lists).collect::<Vec<_>>();
        targets.chunks(SESSIONS_PER_CALL).map(move |targets| {
            let session_keys = targets.iter().flat_map(|target| [&target.viewed_key, &target.cart_key]);
            // Every session is over a limit of 0, which saves the script parsing each score as a number.
            let limit = if targets.iter().all(|target| target.is_idle) { 0 } else { limit };
            Command::script(&REAP, shared_keys.iter().chain(session_keys))
                .num(limit)
                .num(idle_cutoff)
                .arg(user.map_or("", UserId::as_str))
                .args(targets.iter().map(|target| &target.expected_score))
                .repeatable()
                .synced()
        })
    });
    calls.collect()
}
