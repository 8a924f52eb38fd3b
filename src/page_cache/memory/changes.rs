//! Changes of pages: unsafe requests through this isolate and through others. Redis learns of an unsafe request after its response.

use super::{super::stored_page::StoredPage, FAILURE_BACKOFF, PageMemory};
use crate::{ports::time::Timestamp, proxy::home::PageChange};

impl PageMemory {
    /// Returns whether this isolate has voided the page in the last minutes. A read region may still have the old page.
    #[must_use]
    pub fn has_changed(&self, hash: &str, now: Timestamp) -> bool {
        self.copies.borrow().changed(hash, now).is_some()
    }

    /// The last change of the page that this isolate knows.
    #[must_use]
    pub fn last_change(&self, hash: &str, now: Timestamp) -> Option<PageChange> {
        let at = self.copies.borrow().changed(hash, now)?;
        Some(PageChange { at, by_request: self.has_pending_write(hash, now) })
    }

    /// Notes an unsafe request that changed the page at `at`, by the clock of the home tier, and forgets the page.
    pub fn note_write(&self, hash: &str, at: Timestamp, now: Timestamp) {
        self.writes.put(hash, (), now);
        self.forget(hash, at);
    }

    /// Returns whether an unsafe request has changed the page, and Redis may not know of this request.
    #[must_use]
    pub fn has_pending_write(&self, hash: &str, now: Timestamp) -> bool {
        self.writes.get(hash, now).is_some()
    }

    /// Ends the note that was made at `since`, because Redis has learned of the unsafe request, and forgets the page. The note of
    /// a later request stays.
    pub fn end_write(&self, hash: &str, since: Timestamp, now: Timestamp) {
        if self.writes.since(hash, now) == Some(since) {
            self.writes.remove(hash);
        }
        self.forget(hash, now);
    }

    /// Ends the note of an unsafe request in the edge tier. The home tier tells Redis of the request, at its second try after some
    /// seconds. The edge tier does not learn of this moment.
    pub fn end_write_at_home(&self, hash: &str, now: Timestamp) {
        let is_over = |since| now.since(since) >= self.ttl.max(FAILURE_BACKOFF);
        if self.writes.since(hash, now).is_some_and(is_over) {
            self.writes.remove(hash);
        }
    }

    /// Returns whether a page from Redis is older than an unsafe request that another isolate knows.
    #[must_use]
    pub fn is_outdated(&self, hash: &str, page: &StoredPage, now: Timestamp) -> bool {
        self.changed.get(hash, now).is_some_and(|at| page.stored < at)
    }

    /// Learns of a change that another isolate knows. This isolate's copies and next lookups may be older than that.
    pub fn learn_change(&self, hash: &str, PageChange { at, by_request }: PageChange, now: Timestamp) {
        if self.copies.borrow().changed(hash, now).is_some_and(|known| known >= at) {
            return;
        }
        if by_request {
            self.changed.put(hash, at, now);
        }
        self.forget(hash, at);
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, time::Duration};

    use super::*;
    use crate::page_cache::{
        policy::{Reason, VaryFields},
        selecting::SelectingHeaders,
        stored_page::tests::entry,
    };

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn no_copy_is_kept_while_redis_does_not_know_of_an_unsafe_request() {
        let memory = PageMemory::new(Duration::from_secs(5));
        let page =
            Rc::new(StoredPage { vary: VaryFields::default(), variant: String::new(), ..entry(b"", Vec::new()) });
        let has_copy = || memory.copies.borrow_mut().get("a", &&SelectingHeaders::default(), START).is_some();
        memory.note_write("a", START, START);
        memory.keep("a", page.clone(), memory.epoch(START));
        assert!(!has_copy());
        // A purge, here or in an isolate of the edge tier, and a confirmation that found no page.
        memory.forget_all(START);
        let later = START + Duration::from_millis(1);
        memory.learn_change("a", PageChange { at: later, by_request: false }, START);
        memory.forget("a", START);
        memory.keep("a", page.clone(), memory.epoch(START));
        assert!(!has_copy());
        // Another unsafe request, before Redis knows of the first one.
        memory.note_write("a", later, later);
        memory.end_write("a", START, later);
        memory.keep("a", page.clone(), memory.epoch(later));
        assert!(!has_copy());
        memory.end_write("a", later, later);
        memory.keep("a", page, memory.epoch(later));
        assert!(has_copy());
    }

    #[test]
    fn a_hit_for_miss_note_does_not_end_the_note_of_a_write() {
        let memory = PageMemory::new(Duration::from_secs(5));
        memory.note_write("a", START, START);
        // A render that began before the write ends.
        let later = START + Duration::from_millis(1);
        memory.note_unstorable("a", Reason::Private, later);
        assert_eq!(memory.bypass_reason("a", later), Some(Reason::Invalidated));
        // A confirmation finds no note in Redis.
        memory.forget_unstorable("a");
        assert_eq!(memory.bypass_reason("a", later), Some(Reason::Invalidated));
        memory.end_write("a", START, later);
        assert_eq!(memory.bypass_reason("a", later), None);
    }

    #[test]
    fn the_edge_tier_ends_the_note_of_a_write_after_the_second_try_of_the_home_tier() {
        for (ttl, pause) in [(0, 5), (30, 30)] {
            let memory = PageMemory::new(Duration::from_secs(ttl));
            memory.note_write("a", START, START);
            let end = START + Duration::from_secs(pause);
            for (now, is_pending) in [(end - Duration::from_millis(1), true), (end, false)] {
                memory.end_write_at_home("a", now);
                assert_eq!(memory.has_pending_write("a", now), is_pending, "{ttl}");
            }
        }
    }
}
