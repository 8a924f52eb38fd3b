//! What happened a moment ago, in bounded space: by a hash, so two that share one are taken for one, once in 2⁶⁴ pairs.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    mem,
    time::Duration,
};

use rustc_hash::FxHashMap;

use crate::ports::time::Timestamp;

/// What happened within a span, or the last of it, where that was more than fits.
pub struct RecentSet {
    span: Duration,
    most: usize,
    /// Its key is known to nobody outside, so nobody can make two that collide.
    hasher: RandomState,
    young: FxHashMap<u64, Timestamp>,
    old: FxHashMap<u64, Timestamp>,
}

impl RecentSet {
    /// Remembers for `span`; at the most `most` in each of two generations, at 24 bytes each.
    #[must_use]
    pub fn new(span: Duration, most: usize) -> Self {
        let (hasher, young, old) = Default::default();
        Self { span, most, hasher, young, old }
    }

    /// Whether `what` was noted within the span.
    #[must_use]
    pub fn has(&self, what: &impl Hash, now: Timestamp) -> bool {
        self.has_hash(self.hash(what), now)
    }

    /// Notes `what`.
    pub fn note(&mut self, what: &impl Hash, now: Timestamp) {
        let hash = self.hash(what);
        self.note_hash(hash, now);
    }

    /// Whether `what` was noted within the span; if not, it is from now on.
    pub fn is_repeated(&mut self, what: &impl Hash, now: Timestamp) -> bool {
        let hash = self.hash(what);
        let is_repeated = self.has_hash(hash, now);
        if !is_repeated {
            self.note_hash(hash, now);
        }
        is_repeated
    }

    fn hash(&self, what: &impl Hash) -> u64 {
        self.hasher.hash_one(what)
    }

    fn has_hash(&self, hash: u64, now: Timestamp) -> bool {
        let is_recent = |last: &Timestamp| now.since(*last) < self.span;
        [&self.young, &self.old].iter().any(|moments| moments.get(&hash).is_some_and(is_recent))
    }

    fn note_hash(&mut self, hash: u64, now: Timestamp) {
        if self.young.len() >= self.most {
            // Its room is used again: a map that grows moves all that it has, time and again.
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
    fn what_was_noted_is_forgotten_after_the_span() {
        let mut recent = RecentSet::new(Duration::from_secs(10), 100);
        assert!(!recent.is_repeated(&"a", START));
        assert!(recent.is_repeated(&"a", START + Duration::from_secs(9)));
        assert!(!recent.has(&"b", START) && !recent.is_repeated(&"a", START + Duration::from_secs(10)));
    }

    #[test]
    fn the_last_of_too_many_are_remembered() {
        let mut recent = RecentSet::new(Duration::from_secs(10), 100);
        (0..1_000).for_each(|number| recent.note(&number, START));
        assert!(recent.young.len() + recent.old.len() <= 200);
        assert!((900..1_000).all(|number| recent.has(&number, START)) && !recent.has(&0, START));
    }
}
