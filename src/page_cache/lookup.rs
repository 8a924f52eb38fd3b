//! Asks Redis for a page: one script, so that rank, purges, page and lease are of one moment.

use std::time::Duration;

use bytes::Bytes;

use super::{
    entry::Entry,
    key::Page,
    vary::{Fields, Selecting},
};
use crate::schema::scripts::PAGE;
use crate::{
    ports::{error::Error, random, time::Timestamp},
    schema::{hex, ids::ItemId, keys::Keys},
    upstash::{self, Command, FromReply, Redis, Reply},
};

/// The right to render a page and to store it, until it runs out.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Random: two of one page never have the same.
    pub(super) id: String,
    stamp: u64,
}

impl Lease {
    /// Redis' clock when the lease was granted, Unix microseconds: before the render, so that a later purge wins over it.
    #[must_use]
    pub const fn stamp(&self) -> u64 {
        self.stamp
    }
}

/// What is known of a page.
#[derive(Debug)]
pub struct Look {
    /// Where its item stands, if it shows one that was viewed.
    pub rank: Option<u64>,
    /// It is stored: fresh or stale.
    pub entry: Option<Box<Entry>>,
    /// The right to render it. It comes with a page that is not fresh, to one caller at a time.
    pub lease: Option<Lease>,
    pub state: State,
    /// By which headers of the request it is told apart, as far as is known.
    pub vary: Fields,
}

/// What is known of a page, stored or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Unknown,
    /// It was stored a while ago: it is for everybody.
    Known,
    /// It could not be stored a moment ago.
    Unstorable,
}

/// When the lease to render a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Where the page is not fresh.
    IfNeeded,
    /// Where it is not fresh, and was stored before or its item ranks below this: its answer says nothing of freshness.
    IfPopular(u64),
    /// In any case: the client wants the origin's own word.
    Always,
    /// Not at all.
    Never,
}

/// What was asked, to read what is answered.
pub struct Lookup<'a> {
    page: &'a Page,
    selecting: &'a Selecting,
    lease_id: String,
    held: Option<&'a Entry>,
}

impl<'a> Lookup<'a> {
    /// Asks for `page` as `selecting` selects it, and for the lease of `lease` to render it; the script's call, alone or in a pipeline.
    ///
    /// # Errors
    /// [`Error::Platform`] if there are no random bits for the lease.
    pub fn new(
        keys: Keys,
        page: &'a Page,
        selecting: &'a Selecting,
        now: Timestamp,
        lease: Duration,
        ask: Ask,
    ) -> Result<(Self, Command), Error> {
        let lease_id = hex(&random::bytes::<8>()?);
        let below = if let Ask::IfPopular(limit) = ask { limit.to_string() } else { String::new() };
        let command = call(keys, page, now)
            .arg(&lease_id)
            .num(lease.as_millis())
            .num(u8::from(ask == Ask::Always))
            .arg(below)
            .arg("")
            .args(selecting.pairs());
        Ok((Self { page, selecting, lease_id, held: None }, command))
    }

    /// Reads the script's reply.
    ///
    /// # Errors
    /// [`upstash::Error::UnexpectedType`].
    pub fn read(self, reply: Reply) -> Result<Look, upstash::Error> {
        type Parts = (Option<u64>, Option<Bytes>, Option<u64>, String, Option<u64>, String);
        let (rank, entry, stamp, state, soft, vary) = Parts::from_reply(reply)?;
        let mut entry = match entry {
            Some(value) if value.is_empty() => self.held.cloned(),
            value => value.and_then(|value| Entry::decode(&value, self.page, self.selecting)),
        };
        if let (Some(entry), Some(micros)) = (&mut entry, soft) {
            entry.expire(Timestamp::from_millis(micros / 1000));
        }
        let state = match state.as_str() {
            "unstorable" => State::Unstorable,
            "known" => State::Known,
            _ => State::Unknown,
        };
        let vary = entry.as_ref().map_or_else(|| Fields::from_text(&vary), |entry| entry.vary.clone());
        let lease = stamp.map(|stamp| Lease { id: self.lease_id, stamp });
        Ok(Look { rank, entry: entry.map(Box::new), lease, state, vary })
    }
}

/// The script's call, without what else it is asked. A second run finds the lease that the first one took.
fn call(keys: Keys, page: &Page, now: Timestamp) -> Command {
    let hash = page.hash();
    let keys = [keys.ranking(), keys.page(hash), keys.variants(hash), keys.render(hash), keys.purged()];
    Command::script(&PAGE, keys).arg(page.item().map_or("", ItemId::as_str)).arg(hash).num(now.as_millis()).repeatable()
}

/// Only looks for `page`: no lease is taken. What is still the page that is `held` does not come again.
///
/// # Errors
/// [`Error::Redis`].
pub async fn look(
    redis: &Redis,
    page: &Page,
    selecting: &Selecting,
    held: Option<&Entry>,
    now: Timestamp,
) -> Result<Look, Error> {
    let stamp = held.map(|entry| entry.stamp.to_string()).unwrap_or_default();
    let command = call(redis.keys(), page, now).arg("").num(0).num(0).arg("").arg(stamp).args(selecting.pairs());
    let reply = redis.run(command).await?;
    Ok(Lookup { page, selecting, lease_id: String::new(), held }.read(reply)?)
}

/// Finds out whether Redis answers at all.
///
/// # Errors
/// Any [`upstash::Error`].
pub async fn ping(redis: &Redis) -> Result<(), upstash::Error> {
    redis.run(Command::read("PING")).await
}
