//! The account of stored pages, which keeps all pages together within `PAGE_TOTAL_BYTES`.
//!
//! Stores are accounted in batches: while one request writes a batch, further stores of the isolate join the next one.
//! Commands are billed, and 32 concurrent stores need two batches. The account lacks only pages whose store is under
//! way. Eviction begins at fifteen sixteenths of the limit, so those pages normally fit. If an isolate ends before its
//! batch, the account lacks its pages until they are stored again or expire.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use super::store::evict;
use crate::{
    ports::{error::Error, time::Timestamp},
    schema::{redis::Redis, scripts::ACCOUNT},
};
use upstash_rest::{Command, Pairs};

/// Pages that one eviction deletes at most. `account.lua` has the same number.
const MAX_EVICTED: usize = 256;
/// Eviction rounds per batch.
const MAX_EVICTION_ROUNDS: usize = 4;
/// Memory of a page besides its value, bytes: its key and its entries in the account. Measured on Valkey 9.1.
pub const OVERHEAD: u64 = 512;
/// Pages of one batch.
const MAX_BATCH: usize = 200;
/// If a batch takes longer than this, the request that sent it is gone, and another one may write.
const WRITER_LEASE: Duration = Duration::from_secs(10);

/// A change of a page's size.
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
    writer_lease: Cell<Option<Timestamp>>,
}

impl PageAccount {
    /// Adds a page to the account, with those of other requests. Returns at once if another request writes: that
    /// request takes the page along.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn add(&self, redis: &Redis, page: PageSize, now: Timestamp, limit: u64) -> Result<(), Error> {
        self.pending.borrow_mut().push(page);
        if self.writer_lease.get().is_some_and(|end| now < end) {
            return Ok(());
        }
        self.writer_lease.set(Some(now + WRITER_LEASE));
        let mut result = Ok(());
        while result.is_ok() {
            let batch: Vec<_> = {
                let mut pending = self.pending.borrow_mut();
                let count = pending.len().min(MAX_BATCH);
                pending.drain(..count).collect()
            };
            if batch.is_empty() {
                break;
            }
            result = write(redis, &batch, now, limit).await;
        }
        self.writer_lease.set(None);
        result
    }
}

/// Writes sizes, and evicts pages if the account is nearly full.
///
/// A script must declare its keys, but only the script knows which pages to evict. So `account` names them and `evict`
/// deletes those that were not stored again meanwhile.
///
/// # Errors
/// [`Error::Redis`].
pub async fn write(redis: &Redis, pages: &[PageSize], now: Timestamp, limit: u64) -> Result<(), Error> {
    let mut pages = pages;
    for _ in 0..MAX_EVICTION_ROUNDS {
        let call = Command::script(&ACCOUNT, [redis.keys().pages()]).num(now.as_secs()).num(limit).num(OVERHEAD);
        let call = pages.iter().fold(call, |call, page| {
            let PageSize { hash, bytes, is_addition, stored, dies } = page;
            call.arg(hash).num(bytes).num(u8::from(*is_addition)).num(stored.as_millis()).num(dies.as_secs() + 1)
        });
        let call = if pages.iter().any(|page| page.is_addition) { call } else { call.repeatable() };
        let (_, Pairs(oldest)): (u64, Pairs<String, String>) = redis.run(call).await?;
        if oldest.is_empty() {
            break;
        }
        let is_last = oldest.len() < MAX_EVICTED;
        evict(redis, oldest.iter().map(|(hash, score)| (hash.as_str(), score.as_str()))).await?;
        if is_last {
            break;
        }
        pages = &[];
    }
    Ok(())
}
