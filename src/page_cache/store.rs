//! Stores a rendered page. One script, because it must check purges and the lease in the same moment. All pages
//! together take at most `PAGE_TOTAL_BYTES` ([`account`](super::account)): the pages with the oldest render are evicted
//! first. A page that is visited often is also rendered often, so it stays.

use super::{
    account::{self, OVERHEAD, PageAccount, PageSize, Turn, evict},
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
        scripts::{REFUTE, STORE},
    },
};
use upstash_rest::Command;

/// The work on the account that remains after [`PageWriter::put`].
pub enum AccountDue<'a> {
    Nothing,
    /// The change of a page's size.
    Page(PageSize),
    /// The page is in the account, whose sum is this. The turn may write the pages of other requests.
    Sum(Turn<'a>, i64),
}

/// Stores pages for one isolate.
pub struct PageWriter<'a> {
    pub redis: &'a Redis,
    pub account: &'a PageAccount,
    pub now: Timestamp,
    /// The limit of all pages, in bytes.
    pub limit: u64,
}

impl<'a> PageWriter<'a> {
    /// Stores `page` until it dies and ends the lease. Returns whether it is stored, and the work on the account that remains.
    /// It is not stored if the lease expired, a purge came after the lease, or the page is larger than the limit.
    ///
    /// A page that names the lease ends it by itself, if the page outlives the lease: that saves a command.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn put(&self, lease: &Lease, page: &StoredPage) -> Result<(bool, AccountDue<'a>), Error> {
        let Self { redis, account, now, limit } = *self;
        // Only the last argument may be arbitrary bytes.
        let [head, body] = page.encode(&lease.key);
        let bytes = head.len() + body.len();
        if bytes as u64 + OVERHEAD > limit {
            release(redis, lease).await?;
            return Ok((false, AccountDue::Nothing));
        }
        let life = page.dies.since(now);
        let keeps_lease =
            page.render == lease.id && !lease.has_variants && page.vary.is_empty() && life > lease.duration * 2;
        // The size of a variant depends on the other variants, so it is known after the store only.
        let turn = page.vary.is_empty().then(|| account.begin(now)).flatten();
        let [units, dies] = account::entry(bytes as u64, page.dies);
        let end = end(redis.keys(), lease, turn.is_some()).num(life.as_millis().max(1)).arg(page.vary.to_text());
        let end = end.arg(&page.variant).num(MAX_VARIANTS).num(u8::from(keeps_lease));
        let end = end.num(units).num(now.as_millis()).num(dies).arg_concat(&[&head, &body]);
        let (is_stored, bytes, is_addition): Ended = redis.run(end).await?;
        let due = match turn {
            Some(turn) => AccountDue::Sum(turn, bytes),
            None if is_stored => AccountDue::Page(PageSize {
                hash: lease.key.hash().to_owned(),
                bytes,
                is_addition,
                stored: now,
                dies: page.dies,
            }),
            None => AccountDue::Nothing,
        };
        Ok((is_stored, due))
    }

    /// Completes the account after [`PageWriter::put`].
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn complete_account(&self, due: AccountDue<'_>) -> Result<(), Error> {
        let Self { redis, account, now, limit } = *self;
        let turn = match due {
            AccountDue::Nothing => return Ok(()),
            AccountDue::Page(page) => {
                account.push(page);
                let Some(turn) = account.begin(now) else { return Ok(()) };
                turn
            }
            AccountDue::Sum(turn, sum) => {
                if account::is_nearly_full(sum.unsigned_abs(), limit) {
                    account::write(redis, &[], now, limit).await?;
                }
                turn
            }
        };
        turn.write(redis, now, limit).await
    }
}

/// Releases the lease without a page, so that the next request may render.
///
/// # Errors
/// [`Error::Redis`].
pub async fn release(redis: &Redis, lease: &Lease) -> Result<(), Error> {
    Ok(redis.run(without_page(end(redis.keys(), lease, false).num(0)).arg("")).await?)
}

/// Releases the lease and stores a hit-for-miss note: no request waits for the page for two minutes.
///
/// # Errors
/// [`Error::Redis`].
pub async fn note_unstorable(redis: &Redis, lease: &Lease, why: &Unstorable) -> Result<(), Error> {
    let note = why.encode(lease.stamp());
    let end = without_page(end(redis.keys(), lease, false).num(HIT_FOR_MISS.as_millis())).arg(note);
    let (_, bytes, _): Ended = redis.run(end).await?;
    if bytes < 0 {
        // A stored page was deleted. The time does not matter for it, and no other page leaves for it.
        let (hash, never) = (lease.key.hash().to_owned(), Timestamp::from_millis(0));
        let deleted = PageSize { hash, bytes, is_addition: false, stored: never, dies: never };
        account::write(redis, &[deleted], never, u64::MAX).await?;
    }
    Ok(())
}

/// Ends the hit-for-miss note of a page, and no lease.
///
/// # Errors
/// [`Error::Redis`].
pub async fn refute(redis: &Redis, key: &PageKey) -> Result<(), Error> {
    Ok(redis.run(Command::script(&REFUTE, [redis.keys().render(key.hash())]).repeatable()).await?)
}

/// Deletes all variants under the URLs of `keys` and their leases, so that renders under way are not stored (RFC 9111
/// §4.4).
///
/// # Errors
/// [`Error::Redis`].
pub async fn invalidate(redis: &Redis, keys: &[PageKey]) -> Result<(), Error> {
    evict(redis, keys.iter().map(|key| (key.hash(), ""))).await
}

/// The reply of the script: whether the page is stored, its bytes or those of all pages, and whether they are an addition.
type Ended = (bool, i64, bool);

/// Without `accounts`, the script does not write the account. All pages share the account's key. The page's own line has the
/// item that the origin named.
fn end(keys: Keys, lease: &Lease, accounts: bool) -> Command {
    let hash = lease.key.hash();
    let of_page = [keys.page(hash), keys.variants(hash), keys.render(hash), keys.purged(), keys.latest_purge()];
    Command::script(&STORE, of_page.into_iter().chain(accounts.then(|| keys.pages())))
        .arg(lease.key.item_of_url().map_or("", ItemId::as_str))
        .arg(hash)
        .arg(&lease.id)
}

/// Empty arguments in the place of a page.
fn without_page(end: Command) -> Command {
    end.arg("").arg("").num(0).num(0).num(0).num(0).num(0)
}
