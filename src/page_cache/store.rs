//! Stores a rendered page. One script, because it must check purges and the lease in the same moment. All pages
//! together take at most `PAGE_TOTAL_BYTES`: the pages with the oldest render are evicted first. A page that is visited
//! often is also rendered often, so it stays.

use super::{
    hit_for_miss::{HIT_FOR_MISS, Unstorable},
    key::PageKey,
    lookup::Lease,
    selecting::MAX_VARIANTS,
    stored_page::StoredPage,
};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::ItemId,
        keys::Keys,
        redis::Redis,
        scripts::{EVICT, STORE},
    },
};
use upstash_rest::{Command, FromReply, Pairs};

/// Eviction rounds per store. Each evicts up to 256 pages, so four rounds of the smallest pages free 1 MiB.
const MAX_EVICTION_ROUNDS: usize = 4;
/// Memory of a page besides its value, bytes: its key and its accounting entries. Measured on Valkey 9.1.
const OVERHEAD: u64 = 512;

/// Stores `entry` until it dies and ends the lease. False if nothing is stored: the lease expired, a purge came after
/// the lease, or `limit` bytes for all pages leave no room.
///
/// A script must declare its keys, but only the script knows which pages to evict. So one script names them and another
/// deletes them. Eviction starts before the limit is reached, in one store at a time; a store without room is repeated
/// after it.
///
/// # Errors
/// [`Error::Redis`].
pub async fn store(
    redis: &Redis,
    lease: &Lease,
    entry: &StoredPage,
    now: Timestamp,
    limit: u64,
) -> Result<bool, Error> {
    let ttl = entry.dies.since(now).as_millis().max(1);
    let end = end(redis.keys(), lease).num(ttl).arg(entry.vary.to_text()).arg(&entry.variant);
    // Only the last argument may be arbitrary bytes.
    let [head, body] = entry.encode(&lease.key);
    let end = end.num(MAX_VARIANTS).num(limit).num(OVERHEAD).arg_concat(&[&head, &body]);
    for _ in 0..MAX_EVICTION_ROUNDS {
        let (is_stored, Pairs(oldest)) = <(bool, Pairs<String, String>)>::from_reply(redis.reply(&end).await?)?;
        if oldest.is_empty() {
            return Ok(is_stored);
        }
        let room = evict(redis, oldest.iter().map(|(hash, stored)| (hash.as_str(), stored.as_str()))).await;
        if is_stored {
            // The page is stored; the next store evicts.
            room.unwrap_or_else(|error| log::warn!("pages were not evicted: {error}"));
            return Ok(true);
        }
        room?;
    }
    release(redis, lease).await?;
    Ok(false)
}

/// Releases the lease without a page, so that the next request may render.
///
/// # Errors
/// [`Error::Redis`].
pub async fn release(redis: &Redis, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(without_page(end(redis.keys(), lease).num(0)).arg("")).await?)
}

/// Releases the lease and stores a hit-for-miss note: no request waits for the page for two minutes.
///
/// # Errors
/// [`Error::Redis`].
pub async fn note_unstorable(redis: &Redis, lease: &Lease, page: &Unstorable) -> Result<(), Error> {
    let note = page.encode(lease.stamp());
    Ok(redis.run(without_page(end(redis.keys(), lease).num(HIT_FOR_MISS.as_millis())).arg(note)).await?)
}

/// Deletes all variants under the URLs of `pages` and their leases, so that renders under way are not stored (RFC 9111
/// §4.4).
///
/// # Errors
/// [`Error::Redis`].
pub async fn invalidate(redis: &Redis, pages: &[PageKey]) -> Result<(), Error> {
    evict(redis, pages.iter().map(|page| (page.hash(), ""))).await
}

/// Deletes pages, given as hash and time of storage, unless they were stored again since. An empty time deletes the
/// page and its lease in any case. Idempotent.
async fn evict(redis: &Redis, pages: impl Iterator<Item = (&str, &str)> + Clone) -> Result<(), Error> {
    let keys = redis.keys();
    let account = [keys.pages(), keys.dying(), keys.bytes()].into_iter();
    let of_page = |(hash, _): (&str, &str)| [keys.page(hash), keys.variants(hash), keys.render(hash)];
    let call = Command::script(&EVICT, account.chain(pages.clone().flat_map(of_page)));
    Ok(redis.run(call.args(pages.flat_map(|(hash, stored)| [hash, stored])).repeatable()).await?)
}

fn end(keys: Keys, lease: &Lease) -> Command {
    let hash = lease.key.hash();
    let of_page = [keys.page(hash), keys.variants(hash), keys.render(hash)];
    let of_all = [keys.purged(), keys.pages(), keys.dying(), keys.bytes()];
    Command::script(&STORE, of_page.into_iter().chain(of_all))
        .arg(lease.key.item().map_or("", ItemId::as_str))
        .arg(hash)
        .arg(&lease.id)
}

/// Empty arguments in the place of a page.
fn without_page(end: Command) -> Command {
    end.arg("").arg("").num(0).num(0).num(0)
}
