//! A page: renders and isolate copies against purges and unsafe requests.
//!
//! Two isolates serve one page. A lookup, a store, a purge and an eviction are one script each; a reply arrives later
//! than its script runs. The content of the page is a number that grows with every change at the origin.
//!
//! Assumption: an eviction after an unsafe request takes less than a time step, which is half of `PAGE_MEMORY`.

use stateright::{Model, Property};

use crate::Protocol;

/// How long a copy answers without Redis after its confirmation, in time steps: `PAGE_MEMORY`.
pub const MEMORY: u8 = 2;
/// A hit confirms a copy of at least this age.
const CONFIRM: u8 = MEMORY / 2;
const ISOLATES: usize = 2;
/// Visits under way at the same time.
const VISITS: usize = 2;

/// A rendered page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Page {
    /// What the origin said.
    pub content: u8,
    /// Redis' clock when the lease was granted.
    stamp: u8,
}

/// The right to render and store the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    id: u8,
    stamp: u8,
}

/// The copy of an isolate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalCopy {
    pub page: Page,
    confirmed: u8,
    is_confirming: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Isolate {
    pub copy: Option<LocalCopy>,
    /// An unsafe request has changed the page; requests bypass the cache until Redis knows.
    pub is_noted: bool,
    /// The least content that a visit may get that begins now.
    least: u8,
}

/// A visit, or the work behind its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Visit {
    isolate: usize,
    /// The least content that it may get.
    least: u8,
    /// The isolate dropped its copies since the last request to Redis.
    is_void: bool,
    /// When the last request to Redis began.
    asked: u8,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// The lookup ran, its reply is under way.
    Found { page: Option<Page>, lease: Option<Lease>, id: u8, has_waited: bool },
    /// Another request renders the page.
    Waiting { id: u8 },
    /// The origin gets the request.
    Rendering(Option<Lease>),
    /// The origin's response is under way.
    Rendered(u8, Option<Lease>),
    /// The visitor has the page. The store ran, its reply is under way; `None`: nothing was stored.
    Stored { page: Page, is_stored: bool },
    /// The visitor has the copy. The lookup that confirms it ran, its reply is under way.
    Confirming { page: Option<Page> },
}

/// A purge, or an unsafe request, that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    isolate: usize,
    /// Everything older is void when the change is known.
    least: u8,
    step: ChangeStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ChangeStep {
    PurgeBegun,
    PurgeExecuted,
    /// The origin has changed the page, its response is under way.
    Posted,
    /// The visitor has the response.
    Answered,
    Evicted,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    /// What the origin says.
    pub content: u8,
    /// Redis' clock.
    clock: u8,
    pub page: Option<Page>,
    pub lease: Option<u8>,
    purged: Option<u8>,
    pub isolates: [Isolate; ISOLATES],
    pub visits: [Option<Visit>; VISITS],
    change: Option<Change>,
    /// Redis knows that everything older is void.
    void: u8,
    /// No isolate serves anything older from this time on.
    void_everywhere: (u8, u8),
    ids: u8,
    /// Leases that ended before their render.
    ended_leases: u8,
    left: Bounds,
    wrong: Option<Wrong>,
}

/// What happens at most how often in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    visits: u8,
    purges: u8,
    posts: u8,
    lost_replies: u8,
    crashes: u8,
    /// Leases that expire during the render, and pages that expire.
    expiries: u8,
    steps: u8,
}

/// A transition that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    ServedVoid,
    WaitedForItself,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A visit of an isolate begins: the copy answers, or the lookup runs. With `is_reply_lost`, its first reply is
    /// lost and it runs twice.
    Visit { visit: usize, isolate: usize, is_reply_lost: bool },
    /// The reply of the last request to Redis arrives.
    Reply(usize),
    /// The reply is lost: the isolate gives up the store or the confirmation.
    LoseReply(usize),
    /// A waiting visit looks again. If it still finds neither a page nor the lease, it renders the page for itself.
    LookAgain(usize),
    /// The origin renders the page.
    Render(usize),
    /// The origin's response arrives: the visitor gets it, and the store runs.
    Store(usize),
    /// The origin changes the page, and the shop purges it with a request to this isolate.
    Purge(usize),
    /// The script runs. With `is_reply_lost`, it runs twice.
    MarkPurge { is_reply_lost: bool },
    /// An unsafe request through this isolate changes the page at the origin.
    Post(usize),
    /// The visitor gets the response to the unsafe request.
    AnswerPost,
    /// The script deletes the page.
    Evict,
    /// The reply of the purge or of the eviction arrives.
    EndChange,
    /// The platform ends an isolate and everything in it.
    Crash(usize),
    ExpireLease,
    ExpirePage,
    Wait,
}

/// The rules of the protocol. Each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `page` returns no page that was purged after its stamp.
    LookupChecksPurge,
    /// `page` grants one lease at a time.
    LookupGrantsOneLease,
    /// `page` grants the lease again to the request that has it: its first reply was lost.
    LookupFindsOwnLease,
    /// A lease expires.
    LeaseExpires,
    /// A page's stamp is the time of its lease, before the render.
    StampBeforeRender,
    /// `store` stores nothing that was purged after its stamp.
    StoreChecksPurge,
    /// `store` stores nothing without the lease.
    StoreChecksLease,
    /// The isolate keeps only what Redis has stored.
    KeepOnlyStored,
    /// The isolate keeps no page that it dropped while the request to Redis was under way.
    KeepChecksEpoch,
    /// The isolate keeps no page while an unsafe request waits for its eviction.
    KeepChecksNote,
    /// A copy answers for a limited time after its confirmation.
    CopyExpires,
    /// A confirmation counts from its beginning.
    ConfirmedAtStart,
    /// A purge marks the page in Redis.
    PurgeMarks,
    /// A purge drops the copies again when Redis knows it.
    PurgeDropsCopies,
    /// An unsafe request drops the copies before its response.
    PostDropsCopies,
    /// After an unsafe request, the isolate bypasses the cache until Redis knows it.
    PostNotes,
    /// `evict` deletes the page.
    EvictDeletesPage,
    /// `evict` deletes the lease, so that a render under way is not stored.
    EvictDeletesLease,
}

/// The model: the bounds of a run, and the rule that is off.
#[derive(Debug, Clone)]
pub struct Pages {
    bounds: Bounds,
    off: Option<Rule>,
}

impl Pages {
    /// A purge.
    #[must_use]
    pub const fn purge() -> Self {
        let bounds = Bounds { visits: 3, purges: 1, posts: 0, lost_replies: 0, crashes: 0, expiries: 0, steps: 2 };
        Self { bounds, off: None }
    }

    /// An unsafe request.
    #[must_use]
    pub const fn post() -> Self {
        let bounds = Bounds { visits: 3, purges: 0, posts: 1, lost_replies: 0, crashes: 0, expiries: 0, steps: 1 };
        Self { bounds, off: None }
    }

    /// An isolate ends at any moment.
    #[must_use]
    pub const fn crash() -> Self {
        let bounds = Bounds { visits: 2, purges: 1, posts: 0, lost_replies: 1, crashes: 1, expiries: 0, steps: 1 };
        Self { bounds, off: None }
    }

    /// Leases and pages expire.
    #[must_use]
    pub const fn expiry() -> Self {
        let bounds = Bounds { visits: 3, purges: 0, posts: 1, lost_replies: 0, crashes: 0, expiries: 1, steps: 0 };
        Self { bounds, off: None }
    }

    fn has(&self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

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
    fn look_up(&self, state: &mut State, id: u8) -> Step {
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

    /// The script `store`.
    fn store(&self, state: &mut State, content: u8, lease: Lease) -> Step {
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
    fn keep(&self, state: &mut State, page: Page, visit: Visit) {
        let isolate = &mut state.isolates[visit.isolate];
        if (visit.is_void && self.has(Rule::KeepChecksEpoch)) || (isolate.is_noted && self.has(Rule::KeepChecksNote)) {
            return;
        }
        let asked = if self.has(Rule::ConfirmedAtStart) { visit.asked } else { state.now };
        let before = isolate.copy.filter(|copy| copy.page == page).map_or(0, |copy| copy.confirmed);
        isolate.copy = Some(LocalCopy { page, confirmed: asked.max(before), is_confirming: false });
    }

    fn begin(&self, state: &mut State, isolate: usize, is_reply_lost: bool) -> Option<Visit> {
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
    fn reply(&self, state: &mut State, visit: Visit) -> Option<Visit> {
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

    fn end_change(&self, state: &mut State) -> Option<()> {
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
    fn serve(&mut self, content: u8, least: u8) {
        if content < least {
            self.wrong = Some(Wrong::ServedVoid);
        }
    }

    /// An isolate drops its copies and notes.
    fn drop_copies(&mut self, isolate: usize) {
        self.isolates[isolate].copy = None;
        self.isolates[isolate].is_noted = false;
        for visit in self.visits.iter_mut().flatten().filter(|visit| visit.isolate == isolate) {
            visit.is_void = true;
        }
    }

    fn holds_lease(visit: &Visit) -> Option<u8> {
        match visit.step {
            Step::Found { lease, .. } | Step::Rendering(lease) | Step::Rendered(_, lease) => lease.map(|lease| lease.id),
            Step::Waiting { .. } | Step::Stored { .. } | Step::Confirming { .. } => None,
        }
    }

    /// The visits that render with a lease.
    fn lease_holders(&self) -> impl Iterator<Item = u8> {
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

    fn is_rendering(&self, isolate: usize) -> bool {
        let renders = |visit: &&Visit| {
            let holds_lease = matches!(visit.step, Step::Rendering(Some(_)) | Step::Rendered(_, Some(_)));
            visit.isolate == isolate && (holds_lease || matches!(visit.step, Step::Stored { .. }))
        };
        self.visits.iter().flatten().any(|visit| renders(&visit))
    }

    /// What the visitor gets by `action`, if it answers a visit.
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

    fn crash(&mut self, isolate: usize) {
        self.isolates[isolate] = Isolate { least: self.void, ..Isolate::default() };
        for visit in &mut self.visits {
            *visit = visit.filter(|visit| visit.isolate != isolate);
        }
        self.change = self.change.filter(|change| change.isolate != isolate);
    }
}

impl Model for Pages {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            content: 0,
            clock: 0,
            page: None,
            lease: None,
            purged: None,
            isolates: Default::default(),
            visits: Default::default(),
            change: None,
            void: 0,
            void_everywhere: (0, 0),
            ids: 0,
            ended_leases: 0,
            left: self.bounds,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        let free = state.visits.iter().position(Option::is_none);
        for isolate in 0..ISOLATES {
            if let Some(visit) = free.filter(|_| left.visits > 0) {
                actions.push(Action::Visit { visit, isolate, is_reply_lost: false });
                let asks_redis = self.hit(state, isolate).is_none() && !state.isolates[isolate].is_noted;
                if left.lost_replies > 0 && asks_redis {
                    actions.push(Action::Visit { visit, isolate, is_reply_lost: true });
                }
            }
            if state.change.is_none() && left.purges > 0 {
                actions.push(Action::Purge(isolate));
            }
            if state.change.is_none() && left.posts > 0 {
                actions.push(Action::Post(isolate));
            }
            if left.crashes > 0 {
                actions.push(Action::Crash(isolate));
            }
        }
        for (number, visit) in state.visits.iter().enumerate() {
            match visit.map(|visit| visit.step) {
                None => {}
                Some(Step::Found { .. }) => actions.push(Action::Reply(number)),
                Some(Step::Stored { .. } | Step::Confirming { .. }) => {
                    actions.push(Action::Reply(number));
                    if left.lost_replies > 0 {
                        actions.push(Action::LoseReply(number));
                    }
                }
                Some(Step::Waiting { .. }) => actions.push(Action::LookAgain(number)),
                Some(Step::Rendering(_)) => actions.push(Action::Render(number)),
                Some(Step::Rendered(..)) => actions.push(Action::Store(number)),
            }
        }
        match state.change.map(|change| change.step) {
            Some(ChangeStep::PurgeBegun) => {
                actions.push(Action::MarkPurge { is_reply_lost: false });
                if left.lost_replies > 0 {
                    actions.push(Action::MarkPurge { is_reply_lost: true });
                }
            }
            Some(ChangeStep::Posted) => actions.push(Action::AnswerPost),
            Some(ChangeStep::Answered) => actions.push(Action::Evict),
            Some(ChangeStep::PurgeExecuted | ChangeStep::Evicted) => actions.push(Action::EndChange),
            None => {}
        }
        if let Some(id) = state.lease {
            let is_held = state.lease_holders().any(|holder| holder == id);
            if (!is_held && self.has(Rule::LeaseExpires)) || (is_held && left.expiries > 0) {
                actions.push(Action::ExpireLease);
            }
        }
        if state.page.is_some() && left.expiries > 0 {
            actions.push(Action::ExpirePage);
        }
        let evicts = matches!(state.change, Some(Change { step: ChangeStep::Answered | ChangeStep::Evicted, .. }));
        if left.steps > 0 && !evicts {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Visit { visit, isolate, is_reply_lost } => {
                state.left.visits -= 1;
                state.left.lost_replies -= u8::from(is_reply_lost);
                state.visits[visit] = self.begin(&mut state, isolate, is_reply_lost);
            }
            Action::Reply(number) => {
                let visit = state.visits[number].take()?;
                state.visits[number] = self.reply(&mut state, visit);
            }
            Action::LoseReply(number) => {
                state.left.lost_replies -= 1;
                state.visits[number] = None;
            }
            Action::LookAgain(number) => {
                let visit = state.visits[number]?;
                let Step::Waiting { id } = visit.step else { return None };
                let step = if state.asks_no_redis(visit.isolate) {
                    Step::Rendering(None)
                } else {
                    match self.look_up(&mut state, id) {
                        Step::Found { page, lease, id, .. } => Step::Found { page, lease, id, has_waited: true },
                        other => other,
                    }
                };
                state.visits[number] = Some(Visit { step, is_void: false, asked: state.now, ..visit });
            }
            Action::Render(number) => {
                let visit = state.visits[number]?;
                let Step::Rendering(lease) = visit.step else { return None };
                state.visits[number] = Some(Visit { step: Step::Rendered(state.content, lease), ..visit });
            }
            Action::Store(number) => {
                let visit = state.visits[number]?;
                let Step::Rendered(content, lease) = visit.step else { return None };
                state.serve(content, visit.least);
                let step = lease.map(|lease| self.store(&mut state, content, lease));
                let asked = state.now;
                state.visits[number] = step.map(|step| Visit { step, is_void: false, asked, ..visit });
            }
            Action::Purge(isolate) => {
                state.left.purges -= 1;
                state.content += 1;
                state.drop_copies(isolate);
                state.change = Some(Change { isolate, least: state.content, step: ChangeStep::PurgeBegun });
            }
            Action::MarkPurge { is_reply_lost } => {
                let change = state.change?;
                state.left.lost_replies -= u8::from(is_reply_lost);
                if self.has(Rule::PurgeMarks) {
                    state.clock += 1 + u8::from(is_reply_lost);
                    state.purged = Some(state.clock);
                }
                state.void = change.least;
                state.change = Some(Change { step: ChangeStep::PurgeExecuted, ..change });
            }
            Action::Post(isolate) => {
                state.left.posts -= 1;
                state.content += 1;
                state.change = Some(Change { isolate, least: state.content, step: ChangeStep::Posted });
            }
            Action::AnswerPost => {
                let change = state.change?;
                if self.has(Rule::PostDropsCopies) {
                    state.drop_copies(change.isolate);
                }
                let isolate = &mut state.isolates[change.isolate];
                isolate.is_noted = self.has(Rule::PostNotes);
                isolate.least = change.least;
                state.change = Some(Change { step: ChangeStep::Answered, ..change });
            }
            Action::Evict => {
                let change = state.change?;
                if self.has(Rule::EvictDeletesPage) {
                    state.page = None;
                }
                if self.has(Rule::EvictDeletesLease) {
                    state.ended_leases += u8::from(state.lease.take().is_some());
                }
                state.void = change.least;
                state.change = Some(Change { step: ChangeStep::Evicted, ..change });
            }
            Action::EndChange => self.end_change(&mut state)?,
            Action::Crash(isolate) => {
                state.left.crashes -= 1;
                state.crash(isolate);
            }
            Action::ExpireLease => {
                let id = state.lease.take()?;
                if state.lease_holders().any(|holder| holder == id) {
                    state.left.expiries -= 1;
                    state.ended_leases += 1;
                }
            }
            Action::ExpirePage => {
                state.left.expiries -= 1;
                state.page = None;
            }
            Action::Wait => {
                state.left.steps -= 1;
                state.now += 1;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing that was void before a visit is served to it", |_, state: &State| {
                state.wrong != Some(Wrong::ServedVoid)
            }),
            Property::always("Redis returns nothing that it knows to be void", |model: &Self, state: &State| {
                model.valid_page(state).is_none_or(|page| page.content >= state.void)
            }),
            Property::always("one request at a time renders the page for all", |_, state: &State| {
                state.lease_holders().count() <= 1 + usize::from(state.ended_leases)
            }),
            Property::always("no request waits for its own render", |_, state: &State| {
                state.wrong != Some(Wrong::WaitedForItself)
            }),
            Property::eventually("at rest, every visit has ended and no lease is left", |model: &Self, state: &State| {
                model.is_at_rest(state) && state.visits.iter().all(Option::is_none) && state.lease.is_none()
            }),
        ]
    }
}

impl Protocol for Pages {
    type Rule = Rule;
    const RULES: &'static [Rule] = &[
        Rule::LookupChecksPurge,
        Rule::LookupGrantsOneLease,
        Rule::LookupFindsOwnLease,
        Rule::LeaseExpires,
        Rule::StampBeforeRender,
        Rule::StoreChecksPurge,
        Rule::StoreChecksLease,
        Rule::KeepOnlyStored,
        Rule::KeepChecksEpoch,
        Rule::KeepChecksNote,
        Rule::CopyExpires,
        Rule::ConfirmedAtStart,
        Rule::PurgeMarks,
        Rule::PurgeDropsCopies,
        Rule::PostDropsCopies,
        Rule::PostNotes,
        Rule::EvictDeletesPage,
        Rule::EvictDeletesLease,
    ];

    fn all_bounds() -> Vec<Self> {
        vec![Self::post(), Self::expiry(), Self::crash(), Self::purge()]
    }

    fn without(self, rule: Rule) -> Self {
        Self { off: Some(rule), ..self }
    }
}
