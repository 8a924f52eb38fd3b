//! The cache of one location, which its isolates share. Those that are not simulated fill it, too.

use std::time::Duration;

use edgefront::{page_cache::StoredPage, ports::time::Timestamp};
use rustc_hash::FxHashMap;

use crate::catalogue::Item;

/// See the [module](self).
pub struct LocationCache {
    /// Requests here that are not simulated, as a share of all requests.
    rest: f64,
    entries: FxHashMap<Item, Entry>,
}

struct Entry {
    render: u64,
    since: Timestamp,
}

impl LocationCache {
    /// Empty, with `rest` of all requests at isolates that are not simulated.
    #[must_use]
    pub fn new(rest: f64) -> Self {
        Self { rest, entries: FxHashMap::default() }
    }

    /// The render of the location's copy if it is the stored page `page`, which is viewed `views` times a second in the
    /// world. `exponential` draws a time with the mean 1.
    pub fn find(
        &mut self,
        item: Item,
        page: &StoredPage,
        (views, now): (f64, Timestamp),
        exponential: impl FnOnce() -> f64,
    ) -> Option<u64> {
        let render = page.render_number();
        let known = self.entries.get(&item).filter(|entry| entry.render == render);
        let since = if let Some(entry) = known {
            entry.since
        } else {
            let rate = views * self.rest;
            let wait = if rate > 0.0 { exponential() / rate } else { f64::INFINITY };
            let since = page.stored + Duration::from_secs_f64(wait.min(1e6));
            self.entries.insert(item, Entry { render, since });
            since
        };
        (since <= now).then_some(render)
    }

    /// Stores a copy.
    pub fn put(&mut self, item: Item, render: u64, now: Timestamp) {
        let entry = self.entries.entry(item).or_insert(Entry { render, since: now });
        if entry.render != render || entry.since > now {
            *entry = Entry { render, since: now };
        }
    }
}
