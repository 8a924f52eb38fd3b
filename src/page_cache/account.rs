//! The account of stored pages, which keeps all pages together within `PAGE_TOTAL_BYTES`.
//!
//! The script that stores a page also adds it to the account, so a page that is stored alone costs one request. While
//! one request stores, it also writes the pages of the isolate's other stores to the account. It writes them in
//! batches, because commands are billed. 32 concurrent stores need one batch. At any moment, the account lacks at most the
//! pages that are being stored. Eviction begins at fifteen sixteenths of the limit, so those pages normally fit. If an isolate ends
//! before its batch, or the batch fails, the account lacks its pages until they are stored again or expire. A failed
//! batch is not repeated: meanwhile another isolate may have stored the same pages.

use std::{cell::RefCell, time::Duration};

use crate::{
    ports::{
        error::Error,
        time::Timestamp,
        writer_lease::{LeaseHolder, WriterLease},
    },
    schema::{
        redis::Redis,
        scripts::{ACCOUNT, EVICT},
    },
};
use upstash_rest::{Command, FromReply, Pairs, Reply};

/// Largest number of pages that one eviction deletes. `account.lua` has the same number.
const MAX_EVICTED: usize = 256;
/// Largest number of evictions for one batch.
const MAX_EVICTION_ROUNDS: usize = 4;
/// Memory in Redis for a page besides its value, bytes: its key and its entries in the account. Measured on Valkey 9.1.
pub const OVERHEAD: u64 = 512;
/// Largest number of pages in a batch.
const MAX_BATCH: usize = 200;
/// If a batch takes longer than this, the request that sent it is gone, and another one may write.
const WRITER_LEASE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSize {
    pub hash: String,
    /// Bytes of the page's values; −1 if the page was deleted.
    pub bytes: i64,
    /// The bytes come in addition to those that the page has.
    pub is_addition: bool,
    pub stored: Timestamp,
    pub dies: Timestamp,
}

/// The sizes that one isolate has not written yet.
#[derive(Default)]
pub struct PageAccount {
    pending: RefCell<Vec<PageSize>>,
    writer_lease: WriterLease,
}

impl PageAccount {
    /// Adds a page, which the current or the next [`Turn`] writes.
    pub fn push(&self, page: PageSize) {
        self.pending.borrow_mut().push(page);
    }

    /// The turn to write; None while another request has it.
    pub fn begin(&self, now: Timestamp) -> Option<Turn<'_>> {
        self.writer_lease.try_take(now, WRITER_LEASE).map(|holder| Turn { account: self, holder })
    }
}

/// The turn of one request to write the pages of all requests. It ends when it is dropped.
pub struct Turn<'a> {
    account: &'a PageAccount,
    holder: LeaseHolder,
}

impl Turn<'_> {
    /// Takes the pages of one batch.
    pub fn take(&self) -> Vec<PageSize> {
        let mut pending = self.account.pending.borrow_mut();
        let count = pending.len().min(MAX_BATCH);
        pending.drain(..count).collect()
    }

    /// Writes until nothing is pending.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn write(self, redis: &Redis, now: Timestamp, limit: u64) -> Result<(), Error> {
        loop {
            let batch = self.take();
            if batch.is_empty() {
                return Ok(());
            }
            write(redis, &batch, now, limit).await?;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.account.writer_lease.release(self.holder);
    }
}

/// The entry of a page without variants, as `account.lua` writes it: the size in units of 64 bytes, and the score of the
/// member `~{hash}`.
pub fn entry(bytes: u64, dies: Timestamp) -> [i64; 2] {
    const SINCE: u64 = 1_577_836_800;
    let units = bytes.saturating_add(OVERHEAD).div_ceil(64).min((1 << 22) - 1);
    let dies = ((dies.as_secs() + 1).saturating_sub(SINCE) << 22) + units;
    [units.cast_signed(), dies.cast_signed() - (1 << 53)]
}

/// Returns whether pages have to leave, as in `account.lua`.
pub const fn is_nearly_full(sum: u64, limit: u64) -> bool {
    sum >= limit - limit / 16
}

/// The call that writes sizes. Its reply is for [`evict_oldest`].
fn command(redis: &Redis, pages: &[PageSize], now: Timestamp, limit: u64) -> Command {
    let call = Command::script(&ACCOUNT, [redis.keys().pages()]).num(now.as_secs()).num(limit).num(OVERHEAD);
    let call = pages.iter().fold(call, |call, page| {
        let PageSize { hash, bytes, is_addition, stored, dies } = page;
        call.arg(hash).num(bytes).num(u8::from(*is_addition)).num(stored.as_millis()).num(dies.as_secs() + 1)
    });
    if pages.iter().any(|page| page.is_addition) { call } else { call.repeatable() }
}

/// Writes sizes, and evicts pages if the account is nearly full.
///
/// # Errors
/// [`Error::Redis`].
pub async fn write(redis: &Redis, pages: &[PageSize], now: Timestamp, limit: u64) -> Result<(), Error> {
    evict_oldest(redis, redis.reply(&command(redis, pages, now, limit)).await?, now, limit).await
}

/// Evicts the pages that the reply to a [`command`] names, until the account is no longer nearly full.
///
/// A script must declare its keys, but only the script knows which pages to evict. So `account` names them and `evict`
/// deletes those that were not stored again meanwhile.
///
/// # Errors
/// [`Error::Redis`].
async fn evict_oldest(redis: &Redis, mut reply: Reply, now: Timestamp, limit: u64) -> Result<(), Error> {
    for round in 1.. {
        let (_, Pairs(oldest)) = <(u64, Pairs<String, String>)>::from_reply(reply)?;
        if oldest.is_empty() {
            break;
        }
        evict(redis, oldest.iter().map(|(hash, score)| (hash.as_str(), score.as_str()))).await?;
        if oldest.len() < MAX_EVICTED || round == MAX_EVICTION_ROUNDS {
            break;
        }
        reply = redis.reply(&command(redis, &[], now, limit)).await?;
    }
    Ok(())
}

/// Deletes pages, given as hash and time of storage, unless they were stored again since. An empty time deletes the
/// page and its lease in any case. Idempotent.
pub async fn evict(redis: &Redis, pages: impl Iterator<Item = (&str, &str)> + Clone) -> Result<(), Error> {
    let keys = redis.keys();
    let of_page = |(hash, _): (&str, &str)| [keys.page(hash), keys.variants(hash), keys.render(hash)];
    let call = Command::script(&EVICT, [keys.pages()].into_iter().chain(pages.clone().flat_map(of_page)));
    Ok(redis.run(call.args(pages.flat_map(|(hash, stored)| [hash, stored])).repeatable()).await?)
}
