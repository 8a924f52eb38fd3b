//! Notes on pages. They expire by themselves, also after the clock was set back, and take bounded space.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use crate::ports::time::Timestamp;

/// Largest number of notes of one kind, about 100 bytes each.
const MAX_NOTES: usize = 10_000;

/// One kind of note, by the page's hash.
pub struct Notes<T>(RefCell<HashMap<String, (Period, T)>>);

/// When a note was made, and how long it holds.
#[derive(Clone, Copy)]
struct Period {
    since: Timestamp,
    duration: Duration,
}

impl Period {
    fn holds(&self, now: Timestamp) -> bool {
        now.is_near(self.duration, self.since)
    }
}

impl<T: Copy> Notes<T> {
    /// The note on a page, unless it has expired.
    pub fn get(&self, hash: &str, now: Timestamp) -> Option<T> {
        self.0.borrow().get(hash).filter(|(period, _)| period.holds(now)).map(|(_, note)| *note)
    }

    /// Notes `note` for `duration`. A full map drops expired notes first, then all.
    pub fn put(&self, hash: &str, note: T, duration: Duration, now: Timestamp) {
        let mut notes = self.0.borrow_mut();
        if notes.len() >= MAX_NOTES {
            notes.retain(|_, (period, _)| period.holds(now));
        }
        if notes.len() >= MAX_NOTES {
            notes.clear();
        }
        notes.insert(hash.to_owned(), (Period { since: now, duration }, note));
    }

    /// Replaces the note on a page by the result of `change`, if there is one. Returns whether it was replaced.
    pub fn update(&self, hash: &str, now: Timestamp, change: impl FnOnce(&T) -> Option<T>) -> bool {
        let mut notes = self.0.borrow_mut();
        let note = notes.get_mut(hash).filter(|(period, _)| period.holds(now));
        let changed = note.and_then(|(_, note)| change(note).map(|changed| *note = changed));
        changed.is_some()
    }

    /// Drops all notes.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Drops all notes except those that `keeps` selects.
    pub fn retain(&self, keeps: impl Fn(&T) -> bool) {
        self.0.borrow_mut().retain(|_, (_, note)| keeps(note));
    }

    pub fn remove(&self, hash: &str) {
        self.0.borrow_mut().remove(hash);
    }
}

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_expires_and_the_map_is_bounded() {
        let start = Timestamp::from_millis(1_795_000_000_123);
        let five = Duration::from_secs(5);
        let notes = Notes::default();
        notes.put("a", 1, five, start);
        assert_eq!((notes.get("a", start), notes.get("a", start + five)), (Some(1), None));
        assert_eq!(notes.get("a", start - five), None, "the clock was set back");
        for number in 0..=MAX_NOTES {
            notes.put(&number.to_string(), 1, five, start);
        }
        assert!(notes.0.borrow().len() <= MAX_NOTES);
        notes.remove("0");
        assert_eq!(notes.get("0", start), None);
    }
}
