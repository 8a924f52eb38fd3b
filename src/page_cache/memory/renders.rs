//! The renders in progress in this isolate. Other requests of the isolate for the same page wait for its render before
//! they ask Redis again.

use std::{
    cell::RefCell,
    collections::HashMap,
    rc::{Rc, Weak},
};

use crate::ports::time::Timestamp;

/// Late renders of one page at the same time. If the holder of the lease has ended, they still answer the visitors of a busy
/// isolate. If the origin is slow, it does not get the whole crowd.
const MAX_LATE: usize = 16;

/// See the [module](self).
#[derive(Default)]
pub struct Renders {
    /// Renders whose page other requests wait for.
    awaited: Running,
    /// Renders of requests that have waited for `PAGE_WAIT_MS`. Their pages are not stored, so no request waits for them.
    late: Running,
}

impl Renders {
    /// Returns whether a request of this isolate renders the page now.
    #[must_use]
    pub fn has(&self, hash: &str, now: Timestamp) -> bool {
        self.awaited.count(hash, now) > 0
    }

    /// Marks the page as being rendered until the guard is dropped, and at most until `until`.
    #[must_use]
    pub fn start(&self, hash: &str, until: Timestamp) -> RenderGuard {
        self.awaited.start(hash, until)
    }

    /// Permits a late render, until the guard is dropped and at most until `until`. None while [`MAX_LATE`] requests of this isolate
    /// have a permit for the page.
    #[must_use]
    pub fn start_late(&self, hash: &str, now: Timestamp, until: Timestamp) -> Option<RenderGuard> {
        (self.late.count(hash, now) < MAX_LATE).then(|| self.late.start(hash, until))
    }
}

/// The deadlines of renders, by the page's hash. A render ends when its guard is dropped. The deadlines exist because the platform
/// may end a request without dropping its guard.
#[derive(Default)]
struct Running(RefCell<HashMap<String, Vec<Weak<Timestamp>>>>);

/// From this number of pages on, a new render first drops the ended renders of all pages.
const MANY: usize = 1_000;

impl Running {
    fn start(&self, hash: &str, until: Timestamp) -> RenderGuard {
        let mut renders = self.0.borrow_mut();
        if renders.len() >= MANY {
            renders.retain(|_, deadlines| deadlines.iter().any(|until| until.strong_count() > 0));
        }
        let until = Rc::new(until);
        renders.entry(hash.to_owned()).or_default().push(Rc::downgrade(&until));
        RenderGuard { _until: until }
    }

    /// The number of renders of the page. Forgets those that have ended.
    fn count(&self, hash: &str, now: Timestamp) -> usize {
        let mut renders = self.0.borrow_mut();
        let Some(deadlines) = renders.get_mut(hash) else { return 0 };
        deadlines.retain(|until| until.upgrade().is_some_and(|until| now < *until));
        let count = deadlines.len();
        if count == 0 {
            renders.remove(hash);
        }
        count
    }
}

/// A render in progress.
pub struct RenderGuard {
    _until: Rc<Timestamp>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn a_render_ends_with_its_guard_or_its_deadline() {
        let renders = Renders::default();
        let until = START + Duration::from_secs(30);
        let earlier = renders.start("a", until);
        assert!(renders.has("a", START) && !renders.has("b", START));
        assert!(!renders.has("a", until));
        let guard = renders.start("a", until + Duration::from_secs(1));
        drop(earlier);
        assert!(renders.has("a", START), "the end of another render");
        drop(guard);
        assert!(!renders.has("a", START));
    }

    #[test]
    fn a_page_has_a_limited_number_of_late_renders() {
        let renders = Renders::default();
        let until = START + Duration::from_secs(30);
        let mut permits: Vec<_> = (0..MAX_LATE).filter_map(|_| renders.start_late("a", START, until)).collect();
        assert_eq!(permits.len(), MAX_LATE);
        assert!(renders.start_late("a", START, until).is_none() && !renders.has("a", START));
        permits.pop();
        assert!(renders.start_late("a", START, until).is_some());
        assert!(renders.start_late("a", until, until + Duration::from_secs(30)).is_some(), "after the deadline");
    }
}
