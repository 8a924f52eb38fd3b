//! Stores a rendered page: one script, because a purge or another's lease since the render must be seen in the same moment. All stored
//! pages together never take more than `PAGE_TOTAL_BYTES`: those that were stored longest ago make room. A page that is visited is stored
//! again whenever it is rendered again, so it is not among them for long.

use super::{entry::Entry, key::Page, lookup::Lease, memory::UNSTORABLE, vary::MOST_VARIANTS};
use crate::schema::scripts::{EVICT, STORE};
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{ids::ItemId, keys::Keys},
    upstash::{Command, FromReply, Pairs, Redis},
};

/// How often a store makes room before it gives up: 256 of the smallest pages at a time, it is enough for one of 1 MiB.
const ROUNDS: usize = 4;
/// What a page takes of Redis' memory besides its value, in bytes: its key and its entries in the account. Measured on Valkey 9.1.
const BESIDES: u64 = 512;

/// Stores `entry` until it dies and ends the lease, where `limit` bytes of all pages leave room for it. False: nothing is stored, since
/// the lease had run out, or the page was purged since it was granted, or there is no room.
///
/// A script declares its keys before it knows which pages must go: so one tells, another deletes them. That is begun before the limit is
/// reached, by one store alone; one that finds no room all the same is asked for again.
///
/// # Errors
/// [`Error::Redis`].
pub async fn store(
    redis: &Redis,
    page: &Page,
    lease: &Lease,
    entry: &Entry,
    now: Timestamp,
    limit: u64,
) -> Result<bool, Error> {
    let ttl = entry.dies.since(now).as_millis().max(1);
    let end = end(redis.keys(), page, lease).num(ttl).arg(entry.vary.to_text()).arg(&entry.variant);
    // The last argument: the only place where a body may be any bytes.
    let [head, body] = entry.encode(page);
    let end = end.num(MOST_VARIANTS).num(limit).num(BESIDES).arg_of(&[&head, &body]);
    for _ in 0..ROUNDS {
        let (is_stored, Pairs(oldest)) = <(bool, Pairs<String, String>)>::from_reply(redis.reply(&end).await?)?;
        if oldest.is_empty() {
            return Ok(is_stored);
        }
        let room = evict(redis, oldest.iter().map(|(hash, stored)| (hash.as_str(), stored.as_str()))).await;
        if is_stored {
            // Whoever finds no room makes some.
            room.unwrap_or_else(|error| log::warn!("pages were not evicted: {error}"));
            return Ok(true);
        }
        room?;
    }
    give_back(redis, page, lease).await?;
    Ok(false)
}

/// Ends the lease without a page, so that the next request may try.
///
/// # Errors
/// [`Error::Redis`].
pub async fn give_back(redis: &Redis, page: &Page, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(without_page(end(redis.keys(), page, lease).num(0)).arg("")).await?)
}

/// Ends the lease and notes that the page can not be stored, so that nobody waits for it for a while.
///
/// # Errors
/// [`Error::Redis`].
pub async fn note_unstorable(redis: &Redis, page: &Page, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(without_page(end(redis.keys(), page, lease).num(UNSTORABLE.as_millis())).arg("unstorable")).await?)
}

/// Voids what is stored under the URLs of `pages`, all variants of it, and whatever is being rendered for them now: who renders
/// it finds the lease gone (RFC 9111 §4.4).
///
/// # Errors
/// [`Error::Redis`].
pub async fn invalidate(redis: &Redis, pages: &[Page]) -> Result<(), Error> {
    evict(redis, pages.iter().map(|page| (page.hash(), ""))).await
}

/// Deletes pages (hash, when it was stored), unless they have been stored again since then; with an empty moment in any case, and with
/// the lease. Doing it twice does it once.
async fn evict(redis: &Redis, pages: impl Iterator<Item = (&str, &str)> + Clone) -> Result<(), Error> {
    let keys = redis.keys();
    let account = [keys.pages(), keys.dying(), keys.bytes()].into_iter();
    let of_page = |(hash, _): (&str, &str)| [keys.page(hash), keys.variants(hash), keys.render(hash)];
    let call = Command::script(&EVICT, account.chain(pages.clone().flat_map(of_page)));
    Ok(redis.run(call.args(pages.flat_map(|(hash, stored)| [hash, stored])).repeatable()).await?)
}

fn end(keys: Keys, page: &Page, lease: &Lease) -> Command {
    let hash = page.hash();
    let of_page = [keys.page(hash), keys.variants(hash), keys.render(hash)];
    let of_all = [keys.purged(), keys.pages(), keys.dying(), keys.bytes()];
    Command::script(&STORE, of_page.into_iter().chain(of_all))
        .arg(page.item().map_or("", ItemId::as_str))
        .arg(hash)
        .arg(&lease.id)
}

/// The arguments that only a page needs.
fn without_page(end: Command) -> Command {
    end.arg("").arg("").num(0).num(0).num(0)
}
