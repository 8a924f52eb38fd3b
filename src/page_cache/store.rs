//! Stores a rendered page: one script, because a purge or another's lease since the render must be seen in the same moment.

use std::time::Duration;

use super::{entry::Entry, key::Page, lookup::Lease};
use crate::{
    error::Error,
    keys,
    upstash::{Command, Redis, Script},
};

/// Stores `entry` for `lives` and ends the lease. False: the lease had run out, or the page was purged since it was granted;
/// then nothing is stored.
///
/// # Errors
/// [`Error::Redis`].
pub async fn store(redis: &Redis, page: &Page, lease: &Lease, entry: &Entry, lives: Duration) -> Result<bool, Error> {
    Ok(redis.run(end(page, lease, lives, &entry.encode(page))).await?)
}

/// Ends the lease without a page, so that the next request may try.
///
/// # Errors
/// [`Error::Redis`].
pub async fn give_back(redis: &Redis, page: &Page, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(end(page, lease, Duration::ZERO, b"")).await?)
}

fn end(page: &Page, lease: &Lease, lives: Duration, entry: &[u8]) -> Command {
    let hash = page.hash();
    Command::script(&STORE, [&keys::page(hash), &keys::render(hash), keys::PURGED])
        .arg(page.item().as_str())
        .arg(hash)
        .arg(&lease.id)
        .num(lives.as_millis())
        // The last argument: the only place where a body may be any bytes.
        .arg(entry)
}

/// Ends a render.
pub static STORE: Script = Script {
    name: "store",
    source: include_str!("../scripts/store.lua"),
    sha1: "ac9d02406272727b32a4a352dbbbec45eb24a450",
};
