//! What this isolate remembers of pages, for seconds to minutes, in bounded space: plain data, which requests may share.
//!
//! Nothing here is ever fresher than Redis: a copy is served only where Redis is silent, or to those who waited for its render.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
    time::Duration,
};

use super::{entry::Entry, vary::Selecting};
use crate::{fetch::FetchError, time::Timestamp, upstash};

/// So long a page that could not be stored is not looked for: its visitors go to the origin at once (hit-for-miss).
pub const UNSTORABLE: Duration = Duration::from_mins(2);
/// So long a failed origin is not asked again for a page that a stored one stands in for.
const FAILED: Duration = Duration::from_secs(5);
/// Pages that are remembered as unstorable, or as failed, at the most: about 100 bytes each.
const MOST_NOTES: usize = 10_000;
/// Copies of pages, and their bytes, at the most. An isolate has 128 MB.
const MOST_COPIES: usize = 256;
const MOST_BYTES: usize = 8 << 20;
/// Deadlines of Redis in a row after which visitors do not wait for it any more.
const DEADLINES: u32 = 3;
/// So long nobody waits for it; then one visit in so many seconds finds out, behind its answer, whether it is back.
const OPEN: Duration = Duration::from_secs(5);

/// The isolate's memory of pages.
#[derive(Default)]
pub struct Memory {
    unstorable: RefCell<HashMap<String, (Timestamp, &'static str)>>,
    failed: RefCell<HashMap<String, Timestamp>>,
    copies: RefCell<Copies>,
    rendering: Rc<RefCell<HashSet<String>>>,
    breaker: Breaker,
}

#[derive(Default)]
struct Copies {
    /// By the page's hash; variants of one page side by side.
    pages: HashMap<String, Vec<Rc<Entry>>>,
    count: usize,
    bytes: usize,
}

/// Whether visitors wait for Redis.
#[derive(Default)]
struct Breaker {
    /// Deadlines that it missed in a row.
    late: Cell<u32>,
    probe_at: Cell<Option<Timestamp>>,
}

/// Whether to ask Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It answers.
    Worth,
    /// It did not answer of late. With `probe`, this visit finds out behind its answer whether it does again.
    Vain { probe: bool },
}

impl Memory {
    /// Why the page could not be stored when it was last asked for; None if that is long ago, or it could.
    #[must_use]
    pub fn unstorable(&self, hash: &str, now: Timestamp) -> Option<&'static str> {
        let (until, why) = self.unstorable.borrow().get(hash).copied()?;
        (now < until).then_some(why)
    }

    /// Remembers that the page can not be stored.
    pub fn note_unstorable(&self, hash: &str, why: &'static str, now: Timestamp) {
        let mut notes = self.unstorable.borrow_mut();
        make_room(&mut notes, |(until, _)| now < *until);
        notes.insert(hash.to_owned(), (now + UNSTORABLE, why));
    }

    /// Whether the origin failed to render the page a moment ago.
    #[must_use]
    pub fn has_failed(&self, hash: &str, now: Timestamp) -> bool {
        self.failed.borrow().get(hash).is_some_and(|until| now < *until)
    }

    /// Remembers that the origin failed to render the page.
    pub fn note_failure(&self, hash: &str, now: Timestamp) {
        let mut notes = self.failed.borrow_mut();
        make_room(&mut notes, |until| now < *until);
        notes.insert(hash.to_owned(), now + FAILED);
    }

    /// The copy of a page for a request like `selecting`.
    #[must_use]
    pub fn copy(&self, hash: &str, selecting: &Selecting, now: Timestamp) -> Option<Rc<Entry>> {
        let copies = self.copies.borrow();
        let is_for = |entry: &&Rc<Entry>| selecting.variant(&entry.vary).is_some_and(|name| name == entry.variant);
        copies.pages.get(hash)?.iter().find(is_for).filter(|entry| now < entry.dies).cloned()
    }

    /// Keeps a copy of a page that Redis holds, or makes room for it by forgetting others.
    pub fn keep(&self, hash: &str, entry: Rc<Entry>) {
        let mut copies = self.copies.borrow_mut();
        let size = entry.body.len();
        if size > MOST_BYTES / 8 {
            return;
        }
        if copies.count >= MOST_COPIES || copies.bytes + size > MOST_BYTES {
            // What is hot is here again in a moment.
            *copies = Copies::default();
        }
        let variants = copies.pages.entry(hash.to_owned()).or_default();
        let before: Vec<_> =
            variants.extract_if(.., |other| other.variant == entry.variant || other.vary != entry.vary).collect();
        variants.push(entry);
        copies.count = copies.count + 1 - before.len();
        copies.bytes = copies.bytes + size - before.iter().map(|entry| entry.body.len()).sum::<usize>();
    }

    /// Forgets the copies of a page.
    pub fn forget(&self, hash: &str) {
        let mut copies = self.copies.borrow_mut();
        if let Some(before) = copies.pages.remove(hash) {
            copies.count -= before.len();
            copies.bytes -= before.iter().map(|entry| entry.body.len()).sum::<usize>();
        }
        drop(copies);
        self.unstorable.borrow_mut().remove(hash);
    }

    /// Whether a request of this isolate renders the page now.
    #[must_use]
    pub fn is_rendering(&self, hash: &str) -> bool {
        self.rendering.borrow().contains(hash)
    }

    /// Says so, until the guard is dropped: whoever waits for the page in this isolate asks Redis when that is over.
    #[must_use]
    pub fn render(&self, hash: &str) -> Rendering {
        self.rendering.borrow_mut().insert(hash.to_owned());
        Rendering { hash: hash.to_owned(), rendering: self.rendering.clone() }
    }

    /// Whether a visitor should wait for Redis.
    pub fn waiting(&self, now: Timestamp) -> Waiting {
        if self.breaker.late.get() < DEADLINES {
            return Waiting::Worth;
        }
        let probe = self.breaker.probe_at.get().is_none_or(|moment| moment <= now);
        if probe {
            self.breaker.probe_at.set(Some(now + OPEN));
        }
        Waiting::Vain { probe }
    }

    /// Notes how Redis answered. Only what cost its whole deadline counts: an error that comes at once makes nobody wait.
    pub fn note_redis<T>(&self, answer: &Result<T, upstash::Error>, now: Timestamp) {
        let breaker = &self.breaker;
        match answer {
            Ok(_) => breaker.late.set(0),
            Err(upstash::Error::Transport(FetchError::Timeout)) => {
                breaker.late.set(breaker.late.get().saturating_add(1));
                breaker.probe_at.set(Some(now + OPEN));
            }
            Err(_) => {}
        }
    }
}

/// A render under way in this isolate.
pub struct Rendering {
    hash: String,
    rendering: Rc<RefCell<HashSet<String>>>,
}

impl Drop for Rendering {
    fn drop(&mut self) {
        self.rendering.borrow_mut().remove(&self.hash);
    }
}

/// Drops what is over, and everything if that was not enough.
fn make_room<T>(notes: &mut HashMap<String, T>, holds: impl Fn(&T) -> bool) {
    if notes.len() >= MOST_NOTES {
        notes.retain(|_, note| holds(note));
    }
    if notes.len() >= MOST_NOTES {
        notes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{super::entry::tests::entry, *};
    use crate::config::Forward;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    fn asked(foo: &'static str) -> Selecting {
        let headers = [("foo".parse().unwrap(), http::HeaderValue::from_static(foo))].into_iter().collect();
        Selecting::of(&headers, &Forward::All, false)
    }

    #[test]
    fn copies_are_bounded_and_told_apart() {
        let memory = Memory::default();
        let mut other = entry(b"", vec![2; 10]);
        other.variant = "foo=2\n".to_owned();
        memory.keep("a", Rc::new(entry(b"", vec![1; 10])));
        memory.keep("a", Rc::new(other));
        assert_eq!(memory.copy("a", &asked("1"), START).unwrap().body[0], 1);
        assert_eq!(memory.copy("a", &asked("2"), START).unwrap().body[0], 2);
        assert!(memory.copy("a", &asked("3"), START).is_none());
        assert!(memory.copy("a", &asked("1"), START + Duration::from_mins(15)).is_none(), "it is over");
        for number in 0..100 {
            memory.keep(&number.to_string(), Rc::new(entry(b"", vec![0; 500_000])));
            let copies = memory.copies.borrow();
            assert!(copies.bytes <= MOST_BYTES && copies.count == copies.pages.values().map(Vec::len).sum::<usize>());
        }
        memory.forget("99");
        assert!(memory.copy("99", &asked("1"), START).is_none());
    }

    #[test]
    fn what_could_not_be_stored_is_tried_again_later() {
        let memory = Memory::default();
        memory.note_unstorable("a", "private", START);
        assert_eq!(memory.unstorable("a", START), Some("private"));
        assert_eq!(memory.unstorable("a", START + UNSTORABLE), None);
        for number in 0..=MOST_NOTES {
            memory.note_unstorable(&number.to_string(), "private", START);
        }
        assert!(memory.unstorable.borrow().len() <= MOST_NOTES);
    }

    #[test]
    fn nobody_waits_for_a_redis_that_does_not_answer() {
        let memory = Memory::default();
        for _ in 0..DEADLINES {
            assert_eq!(memory.waiting(START), Waiting::Worth);
            memory.note_redis::<()>(&Err(upstash::Error::Unauthorized), START);
            memory.note_redis::<()>(&Err(FetchError::Timeout.into()), START);
        }
        assert_eq!(memory.waiting(START), Waiting::Vain { probe: false });
        let later = START + OPEN;
        assert_eq!(memory.waiting(later), Waiting::Vain { probe: true });
        assert_eq!(memory.waiting(later), Waiting::Vain { probe: false }, "one finds out for all");
        memory.note_redis(&Ok(()), later);
        assert_eq!(memory.waiting(later), Waiting::Worth);
    }
}
