//! Stores a rendered page: one script, because a purge or another's lease since the render must be seen in the same moment.

use super::{entry::Entry, key::Page, lookup::Lease, memory::UNSTORABLE, vary::MOST_VARIANTS};
use crate::{
    error::Error,
    ids::ItemId,
    keys,
    time::Timestamp,
    upstash::{Command, Redis, Script},
};

/// Stores `entry` until it dies and ends the lease. False: the lease had run out, or the page was purged since it was granted;
/// then nothing is stored.
///
/// # Errors
/// [`Error::Redis`].
pub async fn store(redis: &Redis, page: &Page, lease: &Lease, entry: &Entry, now: Timestamp) -> Result<bool, Error> {
    let ttl = entry.dies.since(now).as_millis().max(1);
    let end = end(page, lease).num(ttl).arg(entry.vary.to_text()).arg(&entry.variant);
    // The last argument: the only place where a body may be any bytes.
    Ok(redis.run(end.num(MOST_VARIANTS).arg(entry.encode(page))).await?)
}

/// Ends the lease without a page, so that the next request may try.
///
/// # Errors
/// [`Error::Redis`].
pub async fn give_back(redis: &Redis, page: &Page, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(end(page, lease).num(0).arg("").arg("").num(0).arg("")).await?)
}

/// Ends the lease and notes that the page can not be stored, so that nobody waits for it for a while.
///
/// # Errors
/// [`Error::Redis`].
pub async fn note_unstorable(redis: &Redis, page: &Page, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(end(page, lease).num(UNSTORABLE.as_millis()).arg("").arg("").num(0).arg("unstorable")).await?)
}

/// Voids what is stored under the URLs of `pages`, all variants of it, and whatever is being rendered for them now: who renders
/// it finds the lease gone (RFC 9111 §4.4).
///
/// # Errors
/// [`Error::Redis`].
pub async fn invalidate(redis: &Redis, pages: &[Page]) -> Result<(), Error> {
    let keys =
        pages.iter().map(Page::hash).flat_map(|hash| [keys::page(hash), keys::variants(hash), keys::render(hash)]);
    Ok(redis.run(Command::write("DEL").args(keys).repeatable()).await?)
}

fn end(page: &Page, lease: &Lease) -> Command {
    let hash = page.hash();
    Command::script(&STORE, [&keys::page(hash), &keys::variants(hash), &keys::render(hash), keys::PURGED])
        .arg(page.item().map_or("", ItemId::as_str))
        .arg(hash)
        .arg(&lease.id)
}

/// Ends a render.
pub static STORE: Script = Script {
    name: "store",
    source: include_str!("../scripts/store.lua"),
    sha1: "76c8f6aa4aba5b26389038a94799715827fa812c",
};
