//! Refused renders. After a shared render that the shop refused, the visitor's own request follows. In an outage, this would
//! double the load. So no such request follows for a while after one that failed. If the shop recently accepted a visitor's own
//! request, it is up and refuses only shared renders. Then further requests may follow: a page that always fails must not keep the
//! other pages from their visitors.

use std::{cell::Cell, time::Duration};

use super::{FAILURE_BACKOFF, HIT_FOR_MISS};
use crate::ports::time::Timestamp;

/// See the [module](self).
#[derive(Default)]
pub struct Refusals {
    /// No visitor's request follows for [`FAILURE_BACKOFF`].
    failed: Cell<Option<Timestamp>>,
    /// A failure does not count for [`HIT_FOR_MISS`].
    accepted: Cell<Option<Timestamp>>,
}

impl Refusals {
    /// Returns whether a visitor's own request may follow a refused render.
    #[must_use]
    pub fn may_ask_for_visitor(&self, now: Timestamp) -> bool {
        let is_recent = |at: &Cell<Option<Timestamp>>, span: Duration| at.get().is_some_and(|at| now.is_near(span, at));
        is_recent(&self.accepted, HIT_FOR_MISS) || !is_recent(&self.failed, FAILURE_BACKOFF)
    }

    /// Notes that the shop failed for such a request, too.
    pub fn note_failed(&self, now: Timestamp) {
        self.failed.set(Some(now));
    }

    /// Notes that the shop accepted such a request.
    pub fn note_accepted(&self, now: Timestamp) {
        self.accepted.set(Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stops_further_requests_unless_the_shop_accepted_one() {
        let start = Timestamp::from_millis(1_795_000_000_123);
        let refusals = Refusals::default();
        assert!(refusals.may_ask_for_visitor(start));
        refusals.note_failed(start);
        assert!(!refusals.may_ask_for_visitor(start));
        assert!(refusals.may_ask_for_visitor(start - FAILURE_BACKOFF), "the clock was set back");
        let later = start + FAILURE_BACKOFF;
        assert!(refusals.may_ask_for_visitor(later));
        refusals.note_accepted(later);
        refusals.note_failed(later);
        assert!(refusals.may_ask_for_visitor(later));
        let long_after = later + HIT_FOR_MISS - Duration::from_secs(1);
        refusals.note_failed(long_after);
        assert!(!refusals.may_ask_for_visitor(later + HIT_FOR_MISS));
    }
}
