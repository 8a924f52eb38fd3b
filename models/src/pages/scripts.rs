//! The scripts as the model has them, and the code around them.

use super::{
    Action, CONFIRM, Change, ChangeStep, Isolate, Lease, LocalCopy, MEMORY, Page, Pages, Rule, State, Step, Visit,
    Wrong,
};

impl Pages {
    /// The page that the script `page` returns.
    #[must_use]
    pub fn valid_page(&self, state: &State) -> Option<Page> {
        let is_purged = |page: &Page| state.purged.is_some_and(|mark| mark >= page.stamp);
        state.page.filter(|page| !is_purged(page) || !self.has(Rule::LookupChecksPurge))
    }

    /// The copy that answers without Redis.
    #[must_use]
    pub fn hit(&self, state: &State, isolate: usize) -> Option<LocalCopy> {
        let is_recent = |copy: &LocalCopy| state.now - copy.confirmed < MEMORY || !self.has(Rule::CopyExpires);
        state.isolates[isolate].copy.filter(is_recent)
    }

    /// The script `page` for a request that would take the lease `id`.
    pub(super) fn look_up(&self, state: &mut State, id: u8) -> Step {
        let page = self.valid_page(state);
        let is_own = state.lease == Some(id) && self.has(Rule::LookupFindsOwnLease);
        let is_free = state.lease.is_none() || is_own || !self.has(Rule::LookupGrantsOneLease);
        let lease = (page.is_none() && is_free).then(|| {
            state.clock += 1;
            state.lease = Some(id);
            Lease { id, stamp: state.clock }
        });
        Step::Found { page, lease, id, has_waited: false }
    }

    /// A waiting visit goes on. Its last lookup has no page and no lease; without another one, it renders for itself.
    pub(super) fn look_again(&self, state: &mut State, visit: Visit) -> Option<Step> {
        let Step::Waiting { id } = visit.step else { return None };
        if state.asks_no_redis(visit.isolate) {
            return Some(Step::Rendering(None));
        }
        Some(match self.look_up(state, id) {
            Step::Found { page, lease, id, .. } => Step::Found { page, lease, id, has_waited: true },
            other => other,
        })
    }

    /// The script `store`.
    pub(super) fn store(&self, state: &mut State, content: u8, lease: Lease) -> Step {
        let stamp = if self.has(Rule::StampBeforeRender) { lease.stamp } else { state.clock + 1 };
        let page = Page { content, stamp };
        let has_lease = state.lease == Some(lease.id) || !self.has(Rule::StoreChecksLease);
        let is_purged = state.purged.is_some_and(|mark| mark >= stamp) && self.has(Rule::StoreChecksPurge);
        if has_lease {
            state.lease = None;
        }
        let is_stored = has_lease && !is_purged;
        if is_stored {
            state.page = Some(page);
        }
        Step::Stored { page, is_stored }
    }

    /// The isolate keeps a page that it got from Redis.
    pub(super) fn keep(&self, state: &mut State, page: Page, visit: Visit) {
        let isolate = &mut state.isolates[visit.isolate];
        if (visit.is_void && self.has(Rule::KeepChecksEpoch)) || (isolate.is_noted && self.has(Rule::KeepChecksNote)) {
            return;
        }
        let asked = if self.has(Rule::ConfirmedAtStart) { visit.asked } else { state.now };
        let before = isolate.copy.filter(|copy| copy.page == page).map_or(0, |copy| copy.confirmed);
        isolate.copy = Some(LocalCopy { page, confirmed: asked.max(before), is_confirming: false });
    }

    pub(super) fn begin(&self, state: &mut State, isolate: usize, is_reply_lost: bool) -> Option<Visit> {
        let Isolate { is_noted, least, .. } = state.isolates[isolate];
        let (everywhere, from) = state.void_everywhere;
        let least = if state.now >= from { least.max(everywhere) } else { least };
        let visit = |step| Visit { isolate, least, is_void: false, asked: state.now, step };
        if let Some(copy) = self.hit(state, isolate) {
            let confirms = state.now - copy.confirmed >= CONFIRM && !copy.is_confirming;
            let confirming = visit(Step::Confirming { page: self.valid_page(state) });
            state.serve(copy.page.content, least);
            if confirms {
                state.isolates[isolate].copy = Some(LocalCopy { is_confirming: true, ..copy });
            }
            return confirms.then_some(confirming);
        }
        if is_noted {
            state.serve(state.content, least);
            return None;
        }
        let asked = state.now;
        let id = state.ids;
        state.ids += 1;
        let mut step = self.look_up(state, id);
        if is_reply_lost {
            step = self.look_up(state, id);
        }
        Some(Visit { isolate, least, is_void: false, asked, step })
    }

    /// The reply of the last request to Redis arrives. Returns the visit, unless it ends.
    pub(super) fn reply(&self, state: &mut State, visit: Visit) -> Option<Visit> {
        let next = |step| Some(Visit { step, ..visit });
        match visit.step {
            Step::Found { page: Some(page), .. } => {
                state.serve(page.content, visit.least);
                self.keep(state, page, visit);
                None
            }
            Step::Found { lease: Some(lease), .. } => next(Step::Rendering(Some(lease))),
            Step::Found { has_waited: true, .. } => next(Step::Rendering(None)),
            Step::Found { id, .. } => {
                if state.lease == Some(id) {
                    state.wrong = Some(Wrong::WaitedForItself);
                }
                next(Step::Waiting { id })
            }
            Step::Stored { page, is_stored } => {
                if is_stored || !self.has(Rule::KeepOnlyStored) {
                    self.keep(state, page, visit);
                }
                None
            }
            Step::Confirming { page } => {
                match page {
                    Some(page) => self.keep(state, page, visit),
                    None => state.drop_copies(visit.isolate),
                }
                None
            }
            Step::Waiting { .. } | Step::Rendering(_) | Step::Rendered(..) => Some(visit),
        }
    }

    pub(super) fn end_change(&self, state: &mut State) -> Option<()> {
        let Change { isolate, least, step } = state.change.take()?;
        if step == ChangeStep::Evicted || self.has(Rule::PurgeDropsCopies) {
            state.drop_copies(isolate);
        }
        let isolate = &mut state.isolates[isolate];
        isolate.least = isolate.least.max(least);
        state.void_everywhere = (least, state.now + MEMORY);
        Some(())
    }
}

impl State {
    pub(super) fn serve(&mut self, content: u8, least: u8) {
        if content < least {
            self.wrong = Some(Wrong::ServedVoid);
        }
    }

    /// An isolate drops its copies and notes.
    pub(super) fn drop_copies(&mut self, isolate: usize) {
        self.isolates[isolate].copy = None;
        self.isolates[isolate].is_noted = false;
        for visit in self.visits.iter_mut().flatten().filter(|visit| visit.isolate == isolate) {
            visit.is_void = true;
        }
    }

    pub(super) fn holds_lease(visit: &Visit) -> Option<u8> {
        match visit.step {
            Step::Found { lease, .. } | Step::Rendering(lease) | Step::Rendered(_, lease) => {
                lease.map(|lease| lease.id)
            }
            Step::Waiting { .. } | Step::Stored { .. } | Step::Confirming { .. } => None,
        }
    }

    /// The visits that render with a lease.
    pub(super) fn lease_holders(&self) -> impl Iterator<Item = u8> {
        self.visits.iter().flatten().filter_map(Self::holds_lease)
    }

    /// The isolate of a visit that is under way.
    #[must_use]
    pub fn isolate_of(&self, visit: usize) -> usize {
        self.visits[visit].map_or(0, |visit| visit.isolate)
    }

    /// The visit waits for the render of another one.
    #[must_use]
    pub fn is_waiting(&self, visit: usize) -> bool {
        self.visits[visit].is_some_and(|visit| matches!(visit.step, Step::Waiting { .. }))
    }

    /// The isolate renders the page for all, or bypasses the cache: its visits do not ask Redis after a wait.
    #[must_use]
    pub fn asks_no_redis(&self, isolate: usize) -> bool {
        self.isolates[isolate].is_noted || self.is_rendering(isolate)
    }

    pub(super) fn is_rendering(&self, isolate: usize) -> bool {
        let renders = |visit: &&Visit| {
            let holds_lease = matches!(visit.step, Step::Rendering(Some(_)) | Step::Rendered(_, Some(_)));
            visit.isolate == isolate && (holds_lease || matches!(visit.step, Step::Stored { .. }))
        };
        self.visits.iter().flatten().any(|visit| renders(&visit))
    }

    /// The page that the visitor gets by `action`, if it answers a visit.
    #[must_use]
    pub fn served(&self, model: &Pages, action: Action) -> Option<u8> {
        match action {
            Action::Visit { isolate, .. } => {
                let hit = model.hit(self, isolate).map(|copy| copy.page.content);
                hit.or(self.isolates[isolate].is_noted.then_some(self.content))
            }
            Action::Reply(visit) => match self.visits[visit]?.step {
                Step::Found { page, .. } => Some(page?.content),
                _ => None,
            },
            Action::Store(visit) => match self.visits[visit]?.step {
                Step::Rendered(content, _) => Some(content),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn crash(&mut self, isolate: usize) {
        self.isolates[isolate] = Isolate { least: self.void, ..Isolate::default() };
        for visit in &mut self.visits {
            *visit = visit.filter(|visit| visit.isolate != isolate);
        }
        self.change = self.change.filter(|change| change.isolate != isolate);
    }
}
