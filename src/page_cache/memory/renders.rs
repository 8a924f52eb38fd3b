//! The renders in progress in this isolate. Other requests of the isolate for the same page wait for its render before
//! they ask Redis again.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use crate::ports::time::Timestamp;

/// The deadline of each render, by the page's hash. A page has one render at a time. If its lease was lost, it can have
/// several: then the last one counts.
#[derive(Clone, Default)]
pub struct Renders(Rc<RefCell<HashMap<String, Timestamp>>>);

impl Renders {
    /// Returns whether a request of this isolate renders the page now.
    #[must_use]
    pub fn has(&self, hash: &str, now: Timestamp) -> bool {
        self.0.borrow().get(hash).is_some_and(|until| now < *until)
    }

    /// Marks the page as being rendered until the guard is dropped, and at most until `until`. The deadline exists because
    /// the platform may end a request without dropping its guard.
    #[must_use]
    pub fn start(&self, hash: &str, until: Timestamp) -> RenderGuard {
        self.0.borrow_mut().insert(hash.to_owned(), until);
        RenderGuard { hash: hash.to_owned(), until, renders: self.clone() }
    }
}

/// A render in progress.
pub struct RenderGuard {
    hash: String,
    until: Timestamp,
    renders: Renders,
}

impl Drop for RenderGuard {
    fn drop(&mut self) {
        let mut renders = self.renders.0.borrow_mut();
        if renders.get(&self.hash) == Some(&self.until) {
            renders.remove(&self.hash);
        }
    }
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
}
