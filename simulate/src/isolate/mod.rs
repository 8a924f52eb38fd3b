//! One isolate: the product's memory of pages, batches of activity, traffic counters and circuit breaker.

use std::{cell::LazyCell, rc::Rc, time::Duration};

use edgefront::{
    metrics::traffic::{Metric, TrafficCounters},
    page_cache::{
        LeaseRequest, PageMemory, PageState, Reason, SelectingHeaders, StoredPage,
        admission::popularity,
        decide::{Eligibility, FIRST_PAUSE, FirstStep, Step, StepFacts, Waited, first_step, next_pause, next_step},
        memory::LookupEpoch,
        policy::{RequestDirectives, Reuse},
    },
    ports::{
        answer::BackgroundTask,
        circuit_breaker::{Circuit, CircuitBreaker},
        rate_limit::RateLimit,
        time::{Clock, Timestamp},
    },
    ranking::activity::{Activity, Viewer},
    schema::redis::Redis,
};
use upstash_rest::TransportError;

use crate::{
    catalogue::{Entry, Item},
    redis::{Ask, Found},
    rest::SimulatedRest,
    shared::Shared,
    tally::Source,
    virtual_time,
};

/// See the [module](self).
pub struct Isolate {
    shared: Rc<Shared>,
    /// Its number among all isolates.
    number: usize,
    /// How many isolates it stands for.
    pub weight: f64,
    site: Site,
    pub pages: PageMemory,
    pub activity: Rc<Activity>,
    traffic: Rc<TrafficCounters>,
    circuit: CircuitBreaker,
    redis: Rc<Redis>,
    tasks: Vec<BackgroundTask>,
    last_request: Timestamp,
    ends: Timestamp,
}

/// The place of an isolate, and its distance from Redis.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The location, a number of [`CITIES`](crate::cities::CITIES).
    pub city: usize,
    /// Its cache, a number of the simulation's caches.
    pub cache: usize,
    /// Round trip to the replica for reads, and to the primary.
    pub read: Duration,
    pub write: Duration,
}

/// The answer to a request for a page.
pub struct Served {
    pub source: Source,
    /// Time until the answer leaves the isolate.
    pub wait: Duration,
    /// The stored page, and when Redis confirmed it. None: the answer is not the stored page.
    pub page: Option<(Rc<StoredPage>, Timestamp)>,
    /// The copy must be confirmed after the answer.
    pub confirm: bool,
}

/// A request for a page.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub item: Item,
    pub is_signed_in: bool,
    pub has_token: bool,
    /// `only-if-cached`: the edge tier confirms a copy.
    pub is_confirmation: bool,
    /// The render of the newest copy nearby; 0 without one.
    pub held: u64,
    /// How many requests this one stands for.
    pub weight: f64,
}

impl Isolate {
    #[must_use]
    pub fn new(shared: &Rc<Shared>, number: usize, weight: f64, site: Site) -> Self {
        let config = &shared.config;
        let rest = SimulatedRest { shared: shared.clone(), weight, round_trip: site.write };
        let clock: Rc<dyn Clock> = Rc::new(shared.clock.clone());
        let redis = Redis::new(
            Rc::new(rest),
            clock.clone(),
            config.redis.credentials.clone(),
            config.redis.timeout,
            config.redis.keys,
        );
        let now = clock.now();
        let life = shared.scenario.platform.isolate_life.as_secs_f64();
        Self {
            number,
            weight,
            site,
            pages: PageMemory::new(config.page.memory),
            activity: Rc::new(Activity::new(&config.session)),
            traffic: Rc::new(TrafficCounters::new(config.traffic_interval)),
            circuit: CircuitBreaker::default(),
            redis: Rc::new(redis),
            tasks: Vec::new(),
            last_request: now,
            ends: now + Duration::from_secs_f64(shared.exponential(life)),
            shared: shared.clone(),
        }
    }

    /// Replaces the isolate by an empty one if the platform has ended it.
    pub fn begin_request(&mut self, now: Timestamp) {
        let Self { shared, number, weight, site, .. } = self;
        let is_idle = now.since(self.last_request) >= shared.scenario.platform.isolate_idle;
        if !shared.scenario.is_local && (is_idle || now >= self.ends) {
            *self = Self::new(&shared.clone(), *number, *weight, *site);
        }
        self.last_request = now;
        self.traffic.count(Metric::Hit);
    }

    /// Answers a request for a page in the only tier, or in the home tier.
    pub fn answer(&mut self, view: View, now: Timestamp) -> Served {
        let entry = self.shared.entry(view.item);
        let step = match self.first_step(&entry, view, now) {
            Ok(served) => return served,
            Err(step) => step,
        };
        if step == FirstStep::WithoutRedis {
            return self.answer_without_redis(&entry, view, now);
        }
        let timeout = self.shared.config.redis.timeout;
        let delay = self.shared.redis.borrow().delay();
        if delay + self.site.write > timeout {
            self.circuit.record::<()>(&Err(TransportError::Timeout.into()), now);
            let served = self.answer_without_redis(&entry, view, now);
            return Served { wait: served.wait + timeout, ..served };
        }
        self.circuit.record(&Ok(()), now);
        self.answer_with_redis(&entry, view, now)
    }

    /// Serves the isolate's copy. Otherwise the step that follows.
    fn first_step(&mut self, entry: &Entry, view: View, now: Timestamp) -> Result<Served, FirstStep> {
        let hash = entry.page.hash();
        let hit = self.pages.hit(hash, &LazyCell::new(SelectingHeaders::default), now);
        let reuse = hit.as_ref().map(|hit| RequestDirectives::default().reuse(&hit.page.state(now)));
        let bypass_reason = || self.pages.bypass_reason(hash, now);
        let step = first_step(reuse, view.is_confirmation, bypass_reason, self.circuit.is_open());
        match (step, hit) {
            (FirstStep::ServeLocal, Some(hit)) => Ok(Served {
                source: Source::Memory,
                wait: Duration::ZERO,
                page: Some((hit.page, hit.confirmed)),
                confirm: hit.confirm,
            }),
            (step, _) => Err(step),
        }
    }

    /// The isolate's copy in the edge tier. None: the home tier answers.
    pub fn answer_from_memory(&mut self, view: View, now: Timestamp) -> Option<Served> {
        let entry = self.shared.entry(view.item);
        self.first_step(&entry, view, now).ok()
    }

    /// The isolate's copy, however old.
    #[must_use]
    pub fn fallback(&self, item: Item, now: Timestamp) -> Option<Rc<StoredPage>> {
        let entry = self.shared.entry(item);
        self.pages.fallback(entry.page.hash(), &SelectingHeaders::default(), now)
    }

    fn answer_without_redis(&self, entry: &Entry, view: View, now: Timestamp) -> Served {
        if self.circuit.state(now) == (Circuit::Open { probe: true }) {
            let is_back = self.shared.redis.borrow().delay() + self.site.write <= self.shared.config.redis.timeout;
            if is_back {
                self.circuit.record(&Ok(()), now);
            }
        }
        let copy = self.pages.fallback(entry.page.hash(), &SelectingHeaders::default(), now);
        let is_usable = |copy: &Rc<StoredPage>| {
            copy.is_fresh(now) || RequestDirectives::default().allows_on_error(&copy.state(now), false)
        };
        if let Some(copy) = copy.filter(is_usable) {
            return Served { source: Source::Fallback, wait: Duration::ZERO, page: Some((copy, now)), confirm: false };
        }
        self.shared.tally.borrow_mut().renders += view.weight;
        Served { source: Source::Forwarded, wait: self.ask_origin(now), page: None, confirm: false }
    }

    /// Time that the origin takes for a request.
    fn ask_origin(&self, now: Timestamp) -> Duration {
        let mut random = self.shared.random.borrow_mut();
        self.shared.origin.borrow().arrival(now, &mut random).since(now)
    }

    /// The steps after a lookup, as `page_cache::execute` runs them.
    fn answer_with_redis(&mut self, entry: &Entry, view: View, now: Timestamp) -> Served {
        let shared = self.shared.clone();
        let (config, hash) = (&shared.config.page, entry.page.hash());
        let mut wait = Duration::ZERO;
        let mut waited: Option<Waited> = None;
        let mut pause = FIRST_PAUSE;
        let is_unpopular = self.pages.is_unpopular(hash, now);
        let lease = if is_unpopular { LeaseRequest::IfPopular(config.rank_limit) } else { LeaseRequest::IfStale };
        loop {
            let at = now + wait;
            let epoch = self.pages.epoch(at);
            let (found, took) = self.look_up(view, (!view.is_confirmation).then_some(lease), at);
            wait += took;
            let admitted = popularity(config, found.rank);
            let stored = found.page.as_ref().map(|page| RequestDirectives::default().reuse(&page.state(at)));
            let facts = StepFacts {
                stored,
                has_variants: false,
                state: found.state,
                has_lease: found.has_lease,
                // `look_up` makes the request to the primary.
                is_near: false,
                popularity: admitted,
                is_exact: true,
                eligibility: if view.is_signed_in || is_unpopular {
                    Eligibility::SharedPages
                } else {
                    Eligibility::AnyPage
                },
                only_if_cached: view.is_confirmation,
                is_reload: false,
                failed_meanwhile: false,
                is_never_fresh: false,
                may_replace_error: false,
                wait: waited,
            };
            match next_step(&facts) {
                Step::Serve { collapsed } => {
                    let rerenders = facts.stored == Some(Reuse::Stale) && found.has_lease;
                    if rerenders {
                        self.render(view.item, now + wait, admitted.is_ok());
                    }
                    return self.serve(entry, found, epoch, (wait, collapsed.is_some()));
                }
                Step::Wait(reason) => {
                    let waited = waited.get_or_insert(Waited { reason, is_over: false, bypass: None });
                    // Within the isolate, the end of the render is known.
                    let own = if found.is_own_render { pause } else { Duration::ZERO };
                    wait += pause + own;
                    waited.is_over = wait >= config.wait;
                    pause = next_pause(pause);
                }
                Step::RenderShared(_) | Step::RenderPersonal(_) | Step::Bypass(_) => {
                    return self.ask(entry, (view, found), (now, wait));
                }
                Step::ServeOnError | Step::GatewayTimeout(_) | Step::AskPrimary => {
                    self.pages.forget(hash, at);
                    return Served { source: Source::Redis, wait, page: None, confirm: false };
                }
            }
        }
    }

    fn look_up(&self, view: View, lease: Option<LeaseRequest>, at: Timestamp) -> (Found, Duration) {
        let View { item, held, has_token, weight, .. } = view;
        let ask = Ask { item, lease, held, has_session: has_token, holder: self.number, weight };
        let mut redis = self.shared.redis.borrow_mut();
        let wait = self.site.read + redis.delay();
        let found = redis.look_up(ask, at);
        let is_fresh = found.page.as_ref().is_some_and(|page| page.is_fresh(at));
        let is_near = self.site.read != self.site.write;
        if is_fresh || !is_near || (view.is_confirmation && found.page.is_none()) {
            return (found, wait);
        }
        // A replica has no leases: a page that is not fresh takes a second request, to the primary. The session is known.
        (redis.look_up(Ask { has_session: false, ..ask }, at), wait + self.site.write)
    }

    fn serve(&mut self, entry: &Entry, found: Found, epoch: LookupEpoch, (wait, waited): (Duration, bool)) -> Served {
        let page = found.page.map(|page| {
            self.pages.keep(entry.page.hash(), page.clone(), epoch);
            (page, epoch.began())
        });
        let page = page.filter(|_| !waited);
        Served { source: Source::Redis, wait, page, confirm: false }
    }

    /// Asks the origin for the visitor.
    fn ask(&mut self, entry: &Entry, (view, found): (View, Found), (now, wait): (Timestamp, Duration)) -> Served {
        let at = now + wait;
        let config = &self.shared.config.page;
        let admitted = popularity(config, found.rank);
        if found.has_lease && self.render(view.item, at, admitted.is_ok()) {
            let wait = wait + self.ask_origin(at);
            return Served { source: Source::Stored, wait, page: None, confirm: false };
        }
        if found.has_lease {
            self.shared.redis.borrow_mut().release(view.item, view.weight);
        }
        if admitted == Err(Reason::Unpopular) && found.state == PageState::Unknown {
            self.pages.note_unpopular(entry.page.hash(), at);
        }
        self.shared.tally.borrow_mut().renders += view.weight;
        Served { source: Source::Unpopular, wait: wait + self.ask_origin(at), page: None, confirm: false }
    }

    /// Renders the page to store it. Returns whether it may be stored.
    fn render(&self, item: Item, at: Timestamp, is_popular: bool) -> bool {
        render(&self.shared, item, at, (is_popular, Some(self.number)))
    }

    /// Confirms a copy after the answer, beside Redis.
    pub fn confirm(&mut self, view: View, now: Timestamp) {
        let entry = self.shared.entry(view.item);
        let epoch = self.pages.epoch(now);
        let held = self.fallback(view.item, now).map_or(0, |page| page.render_number());
        let (found, _) = self.look_up(View { held, ..view }, None, now);
        match found.page {
            Some(page) => self.pages.keep(entry.page.hash(), page, epoch),
            None => self.pages.forget(entry.page.hash(), now),
        }
    }

    /// Keeps a page that the home tier handed over.
    pub fn keep(&self, item: Item, (page, confirmed): (Rc<StoredPage>, Timestamp), now: Timestamp) {
        let epoch = self.pages.epoch(now).earlier(now.since(confirmed));
        self.pages.keep(self.shared.entry(item).page.hash(), page, epoch);
    }

    pub fn record(&self, viewer: Viewer<'_>, item: Option<Item>, now: Timestamp) {
        let entry = item.map(|item| self.shared.entry(item));
        self.activity.record_visit(viewer, entry.as_ref().map(|entry| &entry.id), now);
    }

    #[must_use]
    pub const fn site(&self) -> Site {
        self.site
    }

    /// Drops the copies of a page.
    pub fn forget(&self, item: Item, now: Timestamp) {
        self.pages.forget(self.shared.entry(item).page.hash(), now);
    }

    /// Starts the writes that are due, and runs those under way. Returns when they go on.
    pub fn write(&mut self, now: Timestamp) -> Option<Timestamp> {
        let clock: Rc<dyn Clock> = Rc::new(self.shared.clock.clone());
        let activity = self.activity.flush(&self.redis, &clock, &RateLimit::default(), now);
        let traffic = self.traffic.flush(&self.redis, &self.activity.pace(), now);
        self.tasks.extend(activity.into_iter().chain(traffic));
        self.go_on()
    }

    /// Runs the tasks under way.
    pub fn go_on(&mut self) -> Option<Timestamp> {
        virtual_time::poll(&mut self.tasks, &self.shared.clock)
    }

    /// Takes a batch for the home tier.
    pub fn take_batch(&self) -> String {
        let limit = RateLimit::default();
        let batch = futures_util::FutureExt::now_or_never(self.activity.take_relay_lines(&limit));
        batch.unwrap_or_default() + &self.traffic.take_relay_lines()
    }

    /// Takes over the batch of an isolate of the edge tier.
    pub fn receive(&self, batch: &str) {
        for line in batch.lines() {
            let _is_known = self.activity.receive(line) || self.traffic.receive(line);
        }
    }
}

/// Renders a page for all visitors. Returns whether it may be stored.
pub fn render(shared: &Shared, item: Item, at: Timestamp, (is_popular, holder): (bool, Option<usize>)) -> bool {
    let (mut origin, mut random) = (shared.origin.borrow_mut(), shared.random.borrow_mut());
    let arrived = origin.arrival(at, &mut random);
    let popularity = if is_popular { Ok(()) } else { Err(Reason::Unpopular) };
    let Ok(page) = origin.page(popularity, arrived, &shared.config.page, &mut random) else { return false };
    shared.tally.borrow_mut().renders += 1.0;
    shared.redis.borrow_mut().begin_render(item, Rc::new(page), holder, [at, arrived]);
    true
}

#[cfg(test)]
mod tests;
