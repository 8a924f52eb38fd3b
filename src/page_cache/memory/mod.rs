//! The isolate's memory of pages. It keeps entries for seconds to minutes, and its size is bounded. It holds plain data
//! only, because several requests share it. A full map first drops expired entries. If it is still full, it drops all. An
//! empty last column: only a full map removes the entry.
//!
//! | entry | purpose | bound | ends |
//! | --- | --- | --- | --- |
//! | [`keys`]: a URL's key | saves parsing the URL | 2,000 URLs | |
//! | [`keys`]: the item that the origin named for a page | the next lookup ranks this item | 2,000 pages | the origin names none |
//! | [`copies`]: a page from Redis | saves the lookup for `PAGE_MEMORY`, then the page's transfer; a fallback without Redis | 2,000 copies, 12 MiB; the least recently used goes | the page expires, a purge, an unsafe request |
//! | [`copies`]: the last invalidation of a page | a lookup that began before cannot restore the copy | 1,000 pages | |
//! | `unstorable`: hit-for-miss | saves the lookup and the wait for a render | 10,000 pages | 2 min, a purge, a storable response |
//! | `writes`: a write through this isolate | its pages bypass the cache while Redis may not know of the write | 10,000 pages | 2 min, Redis knows of the write; edge tier: `PAGE_MEMORY`, at least 5 s |
//! | `changed`: the time of a write through another isolate | Redis may still have the page from before the write | 10,000 pages | `PAGE_MEMORY`, from 5 s to 2 min |
//! | `unstorable_personal` | saves the lookup, if the request is personal | 10,000 pages | 10 s, a purge |
//! | `unstorable_classes` | saves a shared render for requests of a class | 10,000 classes | 10 s, a purge of all pages |
//! | `unpopular` | saves a shared render that popularity does not admit | 10,000 pages | 2 min |
//! | `failed` | saves a render by a failing origin | 10,000 pages | 5 s, a successful render |
//! | `refuted` | saves further attempts to end a hit-for-miss note | 10,000 pages | 2 min |
//! | [`refusals`]: the last two responses after refused renders | saves the visitor's own request while the shop is down | 2 times | 5 s, 2 min |
//! | [`renders`]: a render in progress | saves the lookups of requests that wait for it | 16 late renders of a page | the render ends |
//! | `account`: sizes of stored pages | saves a request to Redis for each stored page | | they are written |
//! | [`visitor_contents`]: a visitor's content for holes | saves a request to the origin | 1,000 requests, 4 MiB | 2 s, a change by the visitor |
//! | [`facts`]: facts of a session for holes | saves a request to Redis | 5,000 sessions | 2 s, a change by the visitor |

mod changes;
mod copies;
mod facts;
mod keys;
mod notes;
mod refusals;
mod renders;
mod visitor_contents;

use std::{cell::RefCell, ops::Deref, rc::Rc, time::Duration};

use self::{
    copies::LocalCopies, facts::FactMemory, notes::Notes, refusals::Refusals, renders::Renders,
    visitor_contents::VisitorContents,
};
pub use self::{
    copies::{LocalHit, LookupEpoch},
    facts::SessionFacts,
    keys::PageKeys,
    renders::RenderGuard,
    visitor_contents::Role,
};
use super::{
    account::PageAccount,
    hit_for_miss::HIT_FOR_MISS,
    policy::Reason,
    selecting::{RequestClass, SelectingHeaders},
    stored_page::StoredPage,
};
use crate::ports::time::Timestamp;

/// Hit-for-miss after a response to one visitor or one class of requests. Short, because another response may be storable.
const PERSONAL_HIT_FOR_MISS: Duration = Duration::from_secs(10);
/// Backoff after a failed render: an isolate serves the stale page without asking the origin.
const FAILURE_BACKOFF: Duration = Duration::from_secs(5);

/// See the [module](self).
pub struct PageMemory {
    /// `PAGE_MEMORY`: the longest time for which a copy or a note counts without a confirmation from Redis.
    ttl: Duration,
    /// The keys of URLs.
    pub keys: PageKeys,
    copies: RefCell<LocalCopies>,
    /// Pages that cannot be stored for anybody, with the time of their last confirmation.
    unstorable: Notes<(Reason, Timestamp)>,
    /// Pages that a write through this isolate changed. Redis may not know of the write.
    writes: Notes<()>,
    /// Pages that a write through another isolate changed, with the time of the write.
    changed: Notes<Timestamp>,
    /// Pages whose personal renders cannot be stored; other visitors may get a storable response.
    unstorable_personal: Notes<Reason>,
    /// The classes of requests whose responses cannot be stored; other requests may get a storable response.
    unstorable_classes: Notes<()>,
    /// Pages without stated freshness whose item was not popular.
    unpopular: Notes<()>,
    /// Pages whose last render failed.
    failed: Notes<()>,
    /// Pages whose hit-for-miss note a response has ended.
    refuted: Notes<()>,
    /// The shop's recent responses to visitors whose shared render it refused.
    pub refusals: Refusals,
    /// The renders in progress.
    pub renders: Renders,
    /// The sizes of stored pages that are not in Redis' account yet.
    pub account: PageAccount,
    pub visitor_contents: VisitorContents,
    /// Facts of sessions.
    pub facts: FactMemory,
}

impl PageMemory {
    /// An empty memory whose copies answer without Redis for `ttl`.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            keys: PageKeys::default(),
            copies: RefCell::new(LocalCopies::new(ttl)),
            unstorable: Notes::lasting(HIT_FOR_MISS),
            writes: Notes::lasting(HIT_FOR_MISS),
            changed: Notes::lasting(ttl.clamp(FAILURE_BACKOFF, HIT_FOR_MISS)),
            unstorable_personal: Notes::lasting(PERSONAL_HIT_FOR_MISS),
            unstorable_classes: Notes::lasting(PERSONAL_HIT_FOR_MISS),
            unpopular: Notes::lasting(HIT_FOR_MISS),
            failed: Notes::lasting(FAILURE_BACKOFF),
            refuted: Notes::lasting(HIT_FOR_MISS),
            refusals: Refusals::default(),
            renders: Renders::default(),
            account: PageAccount::default(),
            visitor_contents: VisitorContents::default(),
            facts: FactMemory::default(),
        }
    }

    /// The reason for which all requests for the page bypass the cache.
    #[must_use]
    pub fn bypass_reason(&self, hash: &str, now: Timestamp) -> Option<Reason> {
        if self.has_pending_write(hash, now) { Some(Reason::Invalidated) } else { self.unstorable(hash, now) }
    }

    /// The reason why the page cannot be stored for anybody, from a recent response.
    #[must_use]
    pub fn unstorable(&self, hash: &str, now: Timestamp) -> Option<Reason> {
        self.unstorable.get(hash, now).map(|(reason, _)| reason)
    }

    /// Returns whether the caller must confirm the hit-for-miss note with Redis, after its response. A purge in another
    /// location voids the note in Redis only. One caller per `PAGE_MEMORY` gets true.
    #[must_use]
    pub fn must_confirm_unstorable(&self, hash: &str, now: Timestamp) -> bool {
        let is_due = |confirmed| now.since(confirmed) >= self.ttl;
        self.unstorable.update(hash, now, |(reason, confirmed)| is_due(*confirmed).then_some((*reason, now)))
    }

    /// Returns whether the caller may end the hit-for-miss note of a page. One caller in the life of a note gets true.
    #[must_use]
    pub fn may_refute(&self, hash: &str, now: Timestamp) -> bool {
        let is_first = self.refuted.get(hash, now).is_none();
        if is_first {
            self.refuted.put(hash, (), now);
        }
        is_first
    }

    /// Drops the hit-for-miss note of a page.
    pub fn forget_unstorable(&self, hash: &str) {
        self.unstorable.remove(hash);
    }

    /// Notes that the page cannot be stored, and drops its copies.
    pub fn note_unstorable(&self, hash: &str, reason: Reason, now: Timestamp) {
        self.copies.borrow_mut().forget(hash, now);
        self.unstorable.put(hash, (reason, now), now);
    }

    /// The reason why a recent personal render could not be stored.
    #[must_use]
    pub fn unstorable_personal(&self, hash: &str, now: Timestamp) -> Option<Reason> {
        self.unstorable_personal.get(hash, now)
    }

    /// Notes that a personal render of the page cannot be stored.
    pub fn note_unstorable_personal(&self, hash: &str, reason: Reason, now: Timestamp) {
        self.unstorable_personal.put(hash, reason, now);
    }

    /// Returns whether a recent response to a request of the class could not be stored.
    #[must_use]
    pub fn is_unstorable_for(&self, class: &RequestClass, now: Timestamp) -> bool {
        self.unstorable_classes.get(class.as_str(), now).is_some()
    }

    /// Notes that a response to a request of the class cannot be stored.
    pub fn note_unstorable_for(&self, class: &RequestClass, now: Timestamp) {
        self.unstorable_classes.put(class.as_str(), (), now);
    }

    /// Returns whether a recent response stated no freshness, so that only popularity can admit the page.
    #[must_use]
    pub fn is_unpopular(&self, hash: &str, now: Timestamp) -> bool {
        self.unpopular.get(hash, now).is_some()
    }

    /// Notes that the page states no freshness and its item is not popular.
    pub fn note_unpopular(&self, hash: &str, now: Timestamp) {
        self.unpopular.put(hash, (), now);
    }

    /// Returns whether the origin recently failed to render the page.
    #[must_use]
    pub fn has_failed(&self, hash: &str, now: Timestamp) -> bool {
        self.failed.get(hash, now).is_some()
    }

    /// Returns whether the last render of the page failed at `since` or later.
    #[must_use]
    pub fn has_failed_since(&self, hash: &str, since: Timestamp, now: Timestamp) -> bool {
        self.failed.since(hash, now).is_some_and(|at| at >= since)
    }

    /// Notes that the origin failed to render the page.
    pub fn note_failure(&self, hash: &str, now: Timestamp) {
        self.failed.put(hash, (), now);
    }

    /// Notes that a render of the page succeeded.
    pub fn note_success(&self, hash: &str) {
        self.failed.remove(hash);
    }

    /// The epoch of a lookup in Redis that begins now. [`PageMemory::keep`] gets it with the lookup's result.
    #[must_use]
    pub fn epoch(&self, now: Timestamp) -> LookupEpoch {
        self.copies.borrow().epoch(now)
    }

    /// The copy that may answer a request with the headers `selecting` without Redis.
    #[must_use]
    pub fn hit(
        &self,
        hash: &str,
        selecting: &impl Deref<Target = SelectingHeaders>,
        now: Timestamp,
    ) -> Option<LocalHit> {
        self.copies.borrow_mut().hit(hash, selecting, now)
    }

    /// The copy for a request with the headers `selecting`, regardless of its last confirmation: a fallback while Redis
    /// is down.
    #[must_use]
    pub fn fallback(&self, hash: &str, selecting: &SelectingHeaders, now: Timestamp) -> Option<Rc<StoredPage>> {
        self.copies.borrow_mut().get(hash, &selecting, now).map(|copy| copy.page.clone())
    }

    /// Keeps a copy of a page from Redis, unless the page was voided after `epoch`. Also keeps none while Redis does not
    /// know of an unsafe request that changed the page: Redis may still hold a render from before the change.
    pub fn keep(&self, hash: &str, page: Rc<StoredPage>, epoch: LookupEpoch) {
        if !self.has_pending_write(hash, epoch.began()) && !self.is_outdated(hash, &page, epoch.began()) {
            self.copies.borrow_mut().keep(hash, page, epoch);
        }
    }

    /// Bytes of all copies: their bodies, and 1 KB for each copy.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.copies.borrow().bytes()
    }

    /// Drops the copies of a page and its hit-for-miss notes. The note of an unsafe request stays.
    pub fn forget(&self, hash: &str, now: Timestamp) {
        self.copies.borrow_mut().forget(hash, now);
        self.unstorable.remove(hash);
        self.unstorable_personal.remove(hash);
    }

    /// As [`PageMemory::forget`], for all pages.
    pub fn forget_all(&self, now: Timestamp) {
        self.copies.borrow_mut().forget_all(now);
        self.unstorable.clear();
        self.unstorable_personal.clear();
        self.unstorable_classes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn an_unstorable_page_is_tried_again_after_two_minutes() {
        let memory = PageMemory::new(Duration::from_secs(5));
        memory.note_unstorable("a", Reason::Private, START);
        assert_eq!(memory.unstorable("a", START), Some(Reason::Private));
        assert_eq!(memory.unstorable("a", START + HIT_FOR_MISS), None);
    }

    #[test]
    fn a_note_is_confirmed_by_one_request_in_each_interval_and_a_purge_drops_it() {
        let memory = PageMemory::new(Duration::from_secs(5));
        memory.note_unstorable("a", Reason::Private, START);
        let later = START + Duration::from_secs(5);
        assert!(!memory.must_confirm_unstorable("a", START) && !memory.must_confirm_unstorable("b", later));
        assert!(memory.must_confirm_unstorable("a", later) && !memory.must_confirm_unstorable("a", later));
        memory.forget_all(later);
        assert_eq!(memory.unstorable("a", later), None);
    }
}
