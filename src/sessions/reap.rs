//! The end of sessions. The script `reap` alone ends them (but for the one that a login replaces, which `log_in` does): token,
//! last seen, views and cart go in one step, so there is never a login that the cleaning can not see.
//!
//! The lists of a user (`sessions:`, `devices:`) are not part of it. They may name what has ended, and live as long as the last
//! login in them could. Who ends all sessions of a user knows whose lists they are, and clears them too; for the cleaning that
//! would be one more request for each batch, and two calls for each session.

use std::collections::BTreeMap;

use crate::schema::scripts::REAP;
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{ids::UserId, keys::Keys, shard::Shard, token::Token},
    upstash::{Command, Redis},
};

/// How many sessions one call of the script ends. While it runs Redis serves nobody else: 1 to 2 ms if each has a cart.
pub(super) const REAP_AT_ONCE: usize = 100;

/// A session to end.
pub(super) struct Victim {
    shard: Shard,
    viewed: String,
    cart: String,
    /// The score that must not have changed, as Redis wrote it; empty = end it in any case.
    score: String,
    /// By that score it is idle, so it ends however few there are.
    is_idle: bool,
}

impl Victim {
    /// A session that is to end if `score` still is when it was last seen. None if `member` can not be a token of anybody.
    pub fn expired(shard: Shard, member: &str, score: String, is_idle: bool) -> Option<Self> {
        let (viewed, cart) = shard.viewed_and_cart(member)?;
        Some(Self { shard, viewed, cart, score, is_idle })
    }

    /// A session that is to end in any case.
    pub fn logged_out(keys: Keys, token: &Token) -> Self {
        let shard = keys.shard_of(token);
        let (viewed, cart) = (shard.viewed(token), shard.cart(token));
        Self { shard, viewed, cart, score: String::new(), is_idle: false }
    }
}

/// How many sessions each shard may hold. Tokens fall into shards by chance, so at the limit L of n shards a session that leaves
/// is the oldest of its shard, and of all sessions as many are younger as a negative binomial says: L, give or take a standard
/// deviation of √(L·(n−1)), which is 0.12 % for 10 million in 16. There are never more than L in all.
pub(super) fn share(keys: Keys, config: &SessionConfig) -> u64 {
    (config.limit / u64::from(keys.shard_count().get())).max(1)
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reaped {
    pub sessions: u64,
    /// Recorded in `abandoned:`.
    pub carts: u64,
}

impl Reaped {
    /// Adds up the replies to [`reap_commands`].
    pub fn of(replies: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let add = |sum: Self, (sessions, carts)| Self { sessions: sum.sessions + sessions, carts: sum.carts + carts };
        replies.into_iter().fold(Self::default(), add)
    }
}

/// Ends sessions, each in its shard: one request, and none for nobody. Of a `user`, they leave the user's lists, too.
///
/// # Errors
/// [`Error::Redis`].
pub(super) async fn reap(
    redis: &Redis,
    victims: &[Victim],
    user: Option<&UserId>,
    idle_cutoff: Timestamp,
    config: &SessionConfig,
) -> Result<Reaped, Error> {
    let calls = reap_commands(redis.keys(), victims, user, idle_cutoff, config);
    Ok(Reaped::of(redis.all::<Vec<(u64, u64)>>(&calls).await?))
}

/// The calls of the script that end `victims`, for one pipeline; each replies how many sessions it ended and how many carts
/// it recorded.
///
/// They may be sent twice after a lost reply: what is ended is not there the second time.
pub(super) fn reap_commands(
    keys: Keys,
    victims: &[Victim],
    user: Option<&UserId>,
    idle_cutoff: Timestamp,
    config: &SessionConfig,
) -> Vec<Command> {
    let limit = share(keys, config);
    let mut shards = BTreeMap::<Shard, Vec<&Victim>>::new();
    for victim in victims {
        shards.entry(victim.shard).or_default().push(victim);
    }
    let calls = shards.iter().flat_map(|(shard, victims)| {
        let nobody = || [shard.absent_list(), shard.absent_list()];
        let lists = user.map_or_else(nobody, |user| [shard.sessions(user), shard.devices(user)]);
        let own = [shard.recent(), shard.login(), shard.abandoned()].into_iter().chain(lists).collect::<Vec<_>>();
        victims.chunks(REAP_AT_ONCE).map(move |victims| {
            let of_each = victims.iter().flat_map(|victim| [&victim.viewed, &victim.cart]);
            // Over a cap of 0 is everybody, and then the script need not read each score as a number.
            let limit = if victims.iter().all(|victim| victim.is_idle) { 0 } else { limit };
            Command::script(&REAP, own.iter().chain(of_each))
                .num(limit)
                .num(idle_cutoff)
                .arg(user.map_or("", UserId::as_str))
                .args(victims.iter().map(|victim| &victim.score))
                .repeatable()
        })
    });
    calls.collect()
}
