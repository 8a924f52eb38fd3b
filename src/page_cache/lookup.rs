//! Asks Redis for a page: one script, so that rank, purges, page and lease are of one moment.

use std::time::Duration;

use bytes::Bytes;

use super::{entry::Entry, key::Page};
use crate::{
    config::PageConfig,
    error::Error,
    keys,
    time::Timestamp,
    upstash::{self, Command, FromReply, Reply, Script},
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
pub enum Look {
    /// Its item is viewed too rarely: nothing is stored of it. `rank` is None if it was never viewed.
    Unpopular { rank: Option<u64> },
    /// It is stored, fresh or stale. The lease comes with a stale one, to at most one caller.
    Stored { rank: u64, entry: Box<Entry>, lease: Option<Lease> },
    /// It may be stored and is not. Without a lease, somebody else renders it now.
    Absent { rank: u64, lease: Option<Lease> },
}

/// A question to be asked, alone or in a pipeline.
pub struct Lookup<'a> {
    page: &'a Page,
    rank_limit: u64,
    lease_id: String,
    command: Command,
}

impl<'a> Lookup<'a> {
    /// Asks for `page`, and for the lease of `lease` to render it where that is needed.
    ///
    /// # Errors
    /// [`Error::Platform`] if there are no random bits for the lease.
    pub fn new(page: &'a Page, now: Timestamp, config: &PageConfig, lease: Duration) -> Result<Self, Error> {
        let id = getrandom::u64().map_err(|_| Error::Platform("no random bits".to_owned()))?;
        Ok(Self::with(page, now, config, lease, format!("{id:016x}")))
    }

    /// Only looks: no lease is taken.
    #[must_use]
    pub fn only(page: &'a Page, now: Timestamp, config: &PageConfig) -> Self {
        Self::with(page, now, config, Duration::ZERO, String::new())
    }

    fn with(page: &'a Page, now: Timestamp, config: &PageConfig, lease: Duration, lease_id: String) -> Self {
        let hash = page.hash();
        let command = Command::script(&PAGE, [keys::RANKING, &keys::page(hash), &keys::render(hash), keys::PURGED])
            .arg(page.item().as_str())
            .arg(hash)
            .num(now.as_millis())
            .num(config.rank_limit)
            .arg(&lease_id)
            .num(lease.as_millis())
            // A second run could at most miss the lease that the first one took.
            .repeatable();
        Self { page, rank_limit: config.rank_limit, lease_id, command }
    }

    /// The script's call.
    #[must_use]
    pub fn command(&self) -> Command {
        self.command.clone()
    }

    /// Reads the script's reply.
    ///
    /// # Errors
    /// [`upstash::Error::UnexpectedType`].
    pub fn read(self, reply: Reply) -> Result<Look, upstash::Error> {
        let (rank, entry, stamp) = <(Option<u64>, Option<Bytes>, Option<u64>)>::from_reply(reply)?;
        let Some(rank) = rank.filter(|rank| *rank < self.rank_limit) else { return Ok(Look::Unpopular { rank }) };
        let lease = stamp.map(|stamp| Lease { id: self.lease_id, stamp });
        Ok(match entry.and_then(|value| Entry::decode(&value, self.page)) {
            Some(entry) => Look::Stored { rank, entry: Box::new(entry), lease },
            None => Look::Absent { rank, lease },
        })
    }
}

/// Reads a page and hands out the lease to render it.
pub static PAGE: Script = Script {
    name: "page",
    source: include_str!("../scripts/page.lua"),
    sha1: "ca42df52a94501ce4d11c7399888fe885d2af603",
};
