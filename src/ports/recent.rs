//! A set of recent events in bounded space. It stores hashes: one in 2⁶⁴ pairs of events counts as the same event.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    mem,
    time::Duration,
};

use rustc_hash::FxHashMap;

use crate::ports::time::Timestamp;

/// The events of a time span, or the most recent ones if more happen than fit.
pub struct RecentSet {
    span: Duration,
    capacity: usize,
    /// Its key is secret, so that clients cannot craft collisions.
    hasher: RandomState,
    young: FxHashMap<u64, Timestamp>,
    old: FxHashMap<u64, Timestamp>,
}

impl RecentSet {
    /// Remembers events for `span`: at most `capacity` in each of two generations, 24 bytes each.
    #[must_use]
    pub fn new(span: Duration, capacity: usize) -> Self {
        let (hasher, young, old) = Default::default();
        Self { span, capacity, hasher, young, old }
    }

    /// Returns whether `event` was inserted within the span.
    #[must_use]
    pub fn contains(&self, event: &impl Hash, now: Timestamp) -> bool {
        self.contains_hash(self.hasher.hash_one(event), now)
    }

    /// Inserts `event`. If it is in the set, its span begins again.
    pub fn insert(&mut self, event: &impl Hash, now: Timestamp) {
        let hash = self.hasher.hash_one(event);
        self.insert_hash(hash, now);
    }

    /// Inserts `event` if it is not in the set. Returns whether it was inserted.
    pub fn insert_new(&mut self, event: &impl Hash, now: Timestamp) -> bool {
        let hash = self.hasher.hash_one(event);
        let is_new = !self.contains_hash(hash, now);
        if is_new {
            self.insert_hash(hash, now);
        }
        is_new
    }

    fn contains_hash(&self, hash: u64, now: Timestamp) -> bool {
        let is_recent = |last: &Timestamp| now.is_near(self.span, *last);
        [&self.young, &self.old].iter().any(|moments| moments.get(&hash).is_some_and(is_recent))
    }

    fn insert_hash(&mut self, hash: u64, now: Timestamp) {
        if self.young.len() >= self.capacity {
            // The cleared map keeps its memory; a growing map would rehash repeatedly.
            mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(hash, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    #[test]
    fn an_event_is_forgotten_after_the_span() {
        let mut recent = RecentSet::new(Duration::from_secs(10), 100);
        assert!(recent.insert_new(&"a", START));
        assert!(!recent.insert_new(&"a", START + Duration::from_secs(9)));
        assert!(!recent.contains(&"b", START) && recent.insert_new(&"a", START + Duration::from_secs(10)));
        assert!(!recent.contains(&"a", START), "the clock was set back");
    }

    #[test]
    fn the_most_recent_events_are_kept() {
        let mut recent = RecentSet::new(Duration::from_secs(10), 100);
        (0..1_000).for_each(|number| recent.insert(&number, START));
        assert!(recent.young.len() + recent.old.len() <= 200);
        assert!((900..1_000).all(|number| recent.contains(&number, START)) && !recent.contains(&0, START));
    }
}
