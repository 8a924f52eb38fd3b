//! What this isolate remembers of pages, for seconds to minutes, in bounded space: plain data, which requests may share.
//!
//! - `copies`: pages as Redis had them a moment ago.

mod copies;

use std::{
    cell::{Cell, LazyCell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};

use self::copies::Copies;
pub use self::copies::{Asked, Hot};
use super::{admission::Pass, entry::Entry, key::Page, vary::Selecting};
use crate::{
    config::item_routes::ItemRoutes,
    ports::{fetch::FetchError, time::Timestamp},
    upstash,
};

/// So long a page that could not be stored is not looked for: its visitors go to the origin at once (hit-for-miss).
pub const UNSTORABLE: Duration = Duration::from_mins(2);
/// So long a failed origin is not asked again for a page that a stored one stands in for.
const FAILED: Duration = Duration::from_secs(5);
/// Pages that are remembered as unstorable, or as failed, at the most: about 100 bytes each.
const MOST_NOTES: usize = 10_000;
/// Deadlines of Redis in a row after which visitors do not wait for it any more.
const DEADLINES: u32 = 3;
/// So long nobody waits for it; then one visit in so many seconds finds out, behind its answer, whether it is back.
const OPEN: Duration = Duration::from_secs(5);

/// URLs whose canonical form is remembered: to find it takes as long as all the rest of a page that this isolate holds.
const MOST_URLS: usize = 2_000;
/// Longer URLs are not remembered.
const LONGEST_URL: usize = 500;

/// The isolate's memory of pages.
pub struct Memory {
    urls: RefCell<HashMap<String, Page>>,
    unstorable: RefCell<HashMap<String, (Timestamp, &'static str)>>,
    failed: RefCell<HashMap<String, Timestamp>>,
    copies: RefCell<Copies>,
    rendering: Rc<RefCell<HashMap<String, Timestamp>>>,
    breaker: Breaker,
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
    /// An empty one, whose copies answer by themselves for `span`.
    #[must_use]
    pub fn new(span: Duration) -> Self {
        let (urls, unstorable, failed, rendering, breaker) = Default::default();
        Self { urls, unstorable, failed, copies: RefCell::new(Copies::new(span)), rendering, breaker }
    }

    /// [`Page::of_url`].
    ///
    /// # Errors
    /// As that.
    pub fn page(&self, url: String, routes: &ItemRoutes) -> Result<Page, Pass> {
        let mut urls = self.urls.borrow_mut();
        if let Some(page) = urls.get(&url) {
            return Ok(page.clone());
        }
        let page = Page::of_url(&url, routes)?;
        if url.len() <= LONGEST_URL {
            if urls.len() >= MOST_URLS {
                urls.clear();
            }
            urls.insert(url, page.clone());
        }
        Ok(page)
    }

    /// Why the page could not be stored when it was last asked for; None if that is long ago, or it could.
    #[must_use]
    pub fn unstorable(&self, hash: &str, now: Timestamp) -> Option<&'static str> {
        let (until, why) = self.unstorable.borrow().get(hash).copied()?;
        (now < until).then_some(why)
    }

    /// Remembers that the page can not be stored.
    pub fn note_unstorable(&self, hash: &str, why: &'static str, now: Timestamp) {
        self.copies.borrow_mut().forget(hash);
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

    /// To be called before Redis is asked for a page, for [`Memory::keep`].
    #[must_use]
    pub fn asked(&self, now: Timestamp) -> Asked {
        self.copies.borrow().asked(now)
    }

    /// The copy of a page for a request like `selecting`, for an answer without Redis.
    #[must_use]
    pub fn hot<F: FnOnce() -> Selecting>(
        &self,
        hash: &str,
        selecting: &LazyCell<Selecting, F>,
        now: Timestamp,
    ) -> Option<Hot> {
        self.copies.borrow_mut().hot(hash, selecting, now)
    }

    /// The copy of a page for a request like `selecting`, however long ago Redis was asked: it stands in where Redis is silent.
    #[must_use]
    pub fn copy(&self, hash: &str, selecting: &Selecting, now: Timestamp) -> Option<Rc<Entry>> {
        let selecting = LazyCell::new(|| selecting.clone());
        self.copies.borrow_mut().get(hash, &selecting, now).map(|copy| copy.entry.clone())
    }

    /// Keeps a copy of a page that Redis holds, unless it was voided since that was `asked`.
    pub fn keep(&self, hash: &str, entry: Rc<Entry>, asked: Asked) {
        self.copies.borrow_mut().keep(hash, entry, asked);
    }

    /// Forgets the copies of a page.
    pub fn forget(&self, hash: &str) {
        self.copies.borrow_mut().forget(hash);
        self.unstorable.borrow_mut().remove(hash);
    }

    /// Forgets all copies.
    pub fn forget_all(&self) {
        self.copies.borrow_mut().forget_all();
    }

    /// Whether a request of this isolate renders the page now.
    #[must_use]
    pub fn is_rendering(&self, hash: &str, now: Timestamp) -> bool {
        self.rendering.borrow().get(hash).is_some_and(|until| now < *until)
    }

    /// Says so until the guard is dropped, or then, should the request be ended: whoever waits for the page in this isolate asks Redis
    /// when that is over.
    #[must_use]
    pub fn render(&self, hash: &str, until: Timestamp) -> Rendering {
        self.rendering.borrow_mut().insert(hash.to_owned(), until);
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
    rendering: Rc<RefCell<HashMap<String, Timestamp>>>,
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
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    fn memory() -> Memory {
        Memory::new(Duration::from_secs(5))
    }

    #[test]
    fn what_could_not_be_stored_is_tried_again_later() {
        let memory = memory();
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
        let memory = memory();
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
