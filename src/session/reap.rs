//! The end of sessions. The script `reap` alone ends them (but for the one that a login replaces, which `log_in` does): token,
//! last seen, views and cart go in one step, so there is never a login that the cleaning can not see.

use std::collections::BTreeMap;

use crate::{
    config::SessionConfig,
    error::Error,
    ids::{Token, UserId},
    keys::{Keys, Shard},
    time::Timestamp,
    upstash::{Command, Redis, Script},
};

/// How many sessions one call of the script ends. While it runs Redis serves nobody else: 2 to 3 ms if each has a cart.
pub(super) const REAP_AT_ONCE: usize = 100;

/// A session to end.
pub(super) struct Victim {
    shard: Shard,
    /// As it stands in `recent:`.
    pub member: String,
    viewed: String,
    cart: String,
    /// The score that must not have changed, as Redis wrote it; empty = end it in any case.
    score: String,
    /// Whose it is, or was before the login ended. None for a guest, and if it is not known.
    pub user: Option<UserId>,
}

impl Victim {
    /// A session that is to end if `score` still is when it was last seen. None if `member` can not be a token of anybody.
    pub fn expired(shard: Shard, member: String, score: String) -> Option<Self> {
        let (viewed, cart) = shard.of_member(&member)?;
        Some(Self { shard, member, viewed, cart, score, user: None })
    }

    /// A session that is to end in any case. Without a `user`, the token stays in `sessions:` and `devices:` until its user's next login.
    pub fn logged_out(keys: Keys, token: &Token, user: Option<&UserId>) -> Self {
        let shard = keys.shard_of(token);
        Self {
            shard,
            member: token.as_str().to_owned(),
            viewed: shard.viewed(token),
            cart: shard.cart(token),
            score: String::new(),
            user: user.cloned(),
        }
    }
}

/// How many sessions each shard may hold. Tokens fall into shards by chance, so at the limit L of n shards a session that leaves
/// is the oldest of its shard, and of all sessions as many are younger as a negative binomial says: L, give or take a standard
/// deviation of √(L·(n−1)), which is 0.12 % for 10 million in 16. There are never more than L in all.
pub(super) fn share(keys: Keys, config: &SessionConfig) -> u64 {
    (config.limit / u64::from(keys.count().get())).max(1)
}

/// What [`reap`] did.
pub(super) struct Reaped {
    pub sessions: u64,
    /// Recorded in `abandoned:`.
    pub carts: u64,
}

/// Ends sessions, each in its shard: one request, and none for nobody.
///
/// # Errors
/// [`Error::Redis`].
pub(super) async fn reap(
    redis: &Redis,
    victims: &[Victim],
    idle_cutoff: Timestamp,
    config: &SessionConfig,
) -> Result<Reaped, Error> {
    let limit = share(redis.keys(), config);
    let mut shards = BTreeMap::<Shard, Vec<&Victim>>::new();
    for victim in victims {
        shards.entry(victim.shard).or_default().push(victim);
    }
    let calls = shards.iter().flat_map(|(shard, victims)| {
        victims.chunks(REAP_AT_ONCE).map(|victims| call(*shard, victims, idle_cutoff, limit))
    });
    let calls: Vec<_> = calls.collect();
    let ended: Vec<(u64, u64)> = redis.all(&calls).await?;
    let sum = |(sessions, carts), (more, others)| (sessions + more, carts + others);
    let (sessions, carts) = ended.into_iter().fold((0, 0), sum);
    Ok(Reaped { sessions, carts })
}

/// One call of the script. It replies how many sessions it ended and how many carts it recorded.
///
/// It may be sent twice after a lost reply: what it has ended is not there the second time.
fn call(shard: Shard, victims: &[&Victim], idle_cutoff: Timestamp, limit: u64) -> Command {
    let mut keys = vec![shard.recent(), shard.login(), shard.abandoned()];
    for Victim { viewed, cart, user, .. } in victims {
        let nobody = || shard.no_sessions();
        let sessions = user.as_ref().map_or_else(nobody, |user| shard.sessions(user));
        let devices = user.as_ref().map_or_else(nobody, |user| shard.devices(user));
        keys.extend([viewed.clone(), cart.clone(), sessions, devices]);
    }
    let command = Command::script(&REAP, keys).num(limit).num(idle_cutoff).repeatable();
    victims.iter().fold(command, |command, Victim { member, score, user, .. }| {
        command.arg(member).arg(score).arg(user.as_ref().map_or("", UserId::as_str))
    })
}

pub static REAP: Script = Script {
    name: "reap",
    source: include_str!("../scripts/reap.lua"),
    sha1: "d9c5a5dbd6865bc369427589bf01bf67566a2a2c",
};
