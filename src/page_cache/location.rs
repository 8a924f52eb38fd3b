//! The location's cache holds pages between the isolates' memory and Redis. A page crosses from Redis to a location
//! once, not once for each isolate.
//!
//! An entry answers no request by itself. The lookup in Redis names its render, and Redis replies without the page if
//! that page is still the stored one. So a purge takes effect as without this cache. The entries are those of Redis,
//! under the same hashes: shared pages only. A failure is counted and otherwise ignored.

use std::{cell::Cell, rc::Rc, time::Duration};

use sha2::{Digest, Sha256};

use super::{key::PageKey, policy::VaryFields, selecting::SelectingHeaders, stored_page::StoredPage};
use crate::{
    metrics::traffic::{Metric, TrafficCounters},
    ports::{
        fetch::Fetch,
        location_cache::{LocationCache, NoAnswer},
        time::Timestamp,
    },
    schema::hex,
};

/// Consecutive failures that switch the cache off for [`PAUSE`]: not every platform has one.
const MAX_FAILURES: u32 = 3;
const PAUSE: Duration = Duration::from_mins(1);
/// Begins the entry of a page that varies, as in Redis; the names of the request headers follow.
const VARIES: &[u8] = b"edgefront/3 vary ";

/// See the [module](self).
pub struct LocationPages {
    cache: Option<Rc<dyn LocationCache>>,
    /// `PAGE_LOCATION_MS`: the longest wait of a lookup for the cache.
    wait: Duration,
    traffic: Rc<TrafficCounters>,
    /// Holds the bodies of the pages that are found.
    fetch: Rc<dyn Fetch>,
    failures: Cell<u32>,
    paused: Cell<Option<Timestamp>>,
}

impl LocationPages {
    /// Without a cache, or with a `wait` of zero, nothing is found and nothing is stored.
    #[must_use]
    pub fn new(
        cache: Option<Rc<dyn LocationCache>>,
        wait: Duration,
        traffic: Rc<TrafficCounters>,
        fetch: Rc<dyn Fetch>,
    ) -> Self {
        let cache = cache.filter(|_| !wait.is_zero());
        Self { cache, wait, traffic, fetch, failures: Cell::default(), paused: Cell::default() }
    }

    /// The location's copy of a page for a request with the headers `selecting`, if it is newer than the copy `held` of the caller.
    pub async fn find(
        &self,
        key: &PageKey,
        selecting: &SelectingHeaders,
        held: Option<&StoredPage>,
        now: Timestamp,
    ) -> Option<Rc<StoredPage>> {
        let cache = self.usable(now)?;
        let known = held.map(|page| page.render.as_str()).unwrap_or_default();
        let mut value = self.checked(cache.get(key.hash(), known, self.wait).await, now)??;
        if let Some(fields) = value.strip_prefix(VARIES) {
            let fields = VaryFields::from_text(std::str::from_utf8(fields).ok()?);
            let name = name(key, &selecting.variant(&fields)?);
            value = self.checked(cache.get(&name, known, self.wait).await, now)??;
        }
        let mut page = StoredPage::decode(&value, key, selecting)?;
        if held.is_some_and(|held| held.render == page.render || held.stored > page.stored) {
            return None;
        }
        self.traffic.count(Metric::LocationHit);
        page.hold(&*self.fetch);
        Some(Rc::new(page))
    }

    /// Stores a page that Redis has.
    pub async fn put(&self, key: &PageKey, page: &StoredPage, now: Timestamp) {
        let Some(cache) = self.usable(now) else { return };
        let (lifetime, render) = (page.dies.since(now), &page.render);
        let [head, body] = page.encode(key);
        let stored = if page.vary.is_empty() {
            cache.put(key.hash(), render, [&head, &body], lifetime).await
        } else {
            let fields = page.vary.to_text();
            match cache.put(key.hash(), "varies", [VARIES, fields.as_bytes()], lifetime).await {
                Ok(()) => cache.put(&name(key, &page.variant), render, [&head, &body], lifetime).await,
                failed => failed,
            }
        };
        self.checked(stored, now);
    }

    fn usable(&self, now: Timestamp) -> Option<&dyn LocationCache> {
        let is_paused = self.paused.get().is_some_and(|since| now.is_near(PAUSE, since));
        self.cache.as_deref().filter(|_| !is_paused)
    }

    fn checked<T>(&self, outcome: Result<T, NoAnswer>, now: Timestamp) -> Option<T> {
        let failures = if outcome.is_ok() { 0 } else { self.failures.get() + 1 };
        if failures > 0 {
            self.traffic.count(Metric::LocationFailure);
        }
        let is_over = failures >= MAX_FAILURES;
        if is_over {
            log::warn!("page cache: the location's cache fails and is not used for a minute");
            self.paused.set(Some(now));
        }
        self.failures.set(if is_over { 0 } else { failures });
        outcome.ok()
    }
}

/// The name of a variant's entry.
fn name(key: &PageKey, variant: &str) -> String {
    format!("{}/{}", key.hash(), hex(&Sha256::digest(variant)))
}
