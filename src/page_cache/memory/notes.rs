//! Notes on pages. They expire by themselves, also after the clock was set back, and take bounded space.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use crate::ports::time::Timestamp;

/// Largest number of notes of one kind, about 100 bytes each.
const MAX_NOTES: usize = 10_000;

/// One kind of note, by the page's hash, with the time at which each note was made.
pub struct Notes<T> {
    duration: Duration,
    notes: RefCell<HashMap<String, (Timestamp, T)>>,
}

impl<T: Copy> Notes<T> {
    /// Notes that hold for `duration`.
    pub fn lasting(duration: Duration) -> Self {
        Self { duration, notes: RefCell::default() }
    }

    /// The note on a page, unless it has expired.
    pub fn get(&self, hash: &str, now: Timestamp) -> Option<T> {
        self.notes.borrow().get(hash).filter(|(since, _)| self.holds(*since, now)).map(|(_, note)| *note)
    }

    /// The time at which the note on a page was made, unless it has expired.
    pub fn since(&self, hash: &str, now: Timestamp) -> Option<Timestamp> {
        self.notes.borrow().get(hash).map(|(since, _)| *since).filter(|since| self.holds(*since, now))
    }

    fn holds(&self, since: Timestamp, now: Timestamp) -> bool {
        now.is_near(self.duration, since)
    }

    /// Makes a note. A full map drops expired notes first, then all.
    pub fn put(&self, hash: &str, note: T, now: Timestamp) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() >= MAX_NOTES {
            notes.retain(|_, (since, _)| self.holds(*since, now));
        }
        if notes.len() >= MAX_NOTES {
            notes.clear();
        }
        notes.insert(hash.to_owned(), (now, note));
    }

    /// Replaces the note on a page by the result of `change`, if there is one. Returns whether it was replaced.
    pub fn update(&self, hash: &str, now: Timestamp, change: impl FnOnce(&T) -> Option<T>) -> bool {
        let mut notes = self.notes.borrow_mut();
        let note = notes.get_mut(hash).filter(|(since, _)| self.holds(*since, now));
        let changed = note.and_then(|(_, note)| change(note).map(|changed| *note = changed));
        changed.is_some()
    }

    /// Drops all notes.
    pub fn clear(&self) {
        self.notes.borrow_mut().clear();
    }

    pub fn remove(&self, hash: &str) {
        self.notes.borrow_mut().remove(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_expires_and_the_map_is_bounded() {
        let start = Timestamp::from_millis(1_795_000_000_123);
        let five = Duration::from_secs(5);
        let notes = Notes::lasting(five);
        notes.put("a", 1, start);
        assert_eq!((notes.get("a", start), notes.get("a", start + five)), (Some(1), None));
        assert_eq!((notes.since("a", start + five / 2), notes.since("a", start + five)), (Some(start), None));
        assert_eq!(notes.get("a", start - five), None, "the clock was set back");
        for number in 0..=MAX_NOTES {
            notes.put(&number.to_string(), 1, start);
        }
        assert!(notes.notes.borrow().len() <= MAX_NOTES);
        notes.remove("0");
        assert_eq!(notes.get("0", start), None);
    }
}
