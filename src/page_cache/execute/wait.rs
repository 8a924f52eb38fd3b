//! The wait of a request for the render of another request.

use std::time::Duration;

use super::PageRequest;
use crate::{
    page_cache::{
        decide::{FIRST_PAUSE, Waited, next_pause},
        lookup::LookupResult,
        memory::RenderGuard,
        policy::ForwardReason,
    },
    ports::time::Timestamp,
};

/// See the [module](self).
pub(super) struct RenderWait {
    /// `PAGE_WAIT_MS` has passed: the request renders the page itself, unless too many requests of the isolate do so.
    give_up: Timestamp,
    /// The lease of a killed holder has expired by then, and the next holder has had time to render.
    must_give_up: Timestamp,
    /// The pause before the next lookup.
    pub pause: Duration,
    /// None before the first pause.
    pub waited: Option<Waited>,
    /// The render of the stored page when the wait began.
    pub first_render: Option<u64>,
    /// The permit to render the page without the lease.
    late_render: Option<RenderGuard>,
}

impl RenderWait {
    pub fn new(PageRequest { visit, .. }: &PageRequest) -> Self {
        let give_up = visit.now + visit.app.config.page.wait;
        Self {
            give_up,
            must_give_up: give_up + visit.app.config.origin.timeout,
            pause: FIRST_PAUSE,
            waited: None,
            first_render: None,
            late_render: None,
        }
    }

    /// Takes note of a pause that has passed. Returns whether to look the page up again: single flight within the isolate, so
    /// Redis is asked again when the isolate's own render has ended.
    pub fn end_pause(
        &mut self,
        PageRequest { visit, key, .. }: &PageRequest,
        lookup: &LookupResult,
        reason: ForwardReason,
    ) -> bool {
        let app = &visit.app;
        let now = app.clock.now();
        self.first_render.get_or_insert(lookup.page.as_ref().map_or(0, |page| page.render_number()));
        if now >= self.give_up && self.late_render.is_none() {
            self.late_render = app.pages.renders.start_late(key.hash(), now, now + app.config.origin.timeout);
        }
        let waited = self.waited.get_or_insert(Waited { reason, is_over: false, bypass: None });
        waited.is_over = self.late_render.is_some() || now >= self.must_give_up;
        if app.pages.renders.has(key.hash(), now) {
            return false;
        }
        waited.bypass = app.pages.bypass_reason(key.hash(), now);
        if waited.bypass.is_some() {
            return false;
        }
        self.pause = next_pause(self.pause);
        true
    }
}
