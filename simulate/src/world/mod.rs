//! The discrete-event simulation: visitors, isolates, tiers and Redis, one event after another.
//!
//! **Sampling.** A platform with much traffic has many isolates that do not know each other: they meet in Redis and in
//! their location's cache. So the simulation runs some of each location's isolates, each with its whole traffic, and
//! multiplies what they did. For each page, the visitors of all other isolates are a Poisson process with the rest of
//! the page's rate. That process renders the pages that Redis lacks, and fills the locations' caches.
//!
//! - `build`: the beginning.
//! - `serve`: requests through the tiers.

mod build;
mod serve;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    rc::Rc,
    time::Duration,
};

use edgefront::{
    ports::{
        time::{Clock, Timestamp},
        writer_lease::LeaseHolder,
    },
    routes::EDGE_BATCH_WINDOW,
};

use crate::{
    catalogue::Item,
    cities::{self, CITIES, PRIMARY},
    isolate::{Isolate, Site, render},
    location::LocationCache,
    numbers::{to_f64, to_u32, to_usize},
    redis::Due,
    scenario::{Layout, Scenario},
    shared::{START, Shared},
    summary::Summary,
    visitor::{Action, TraceEntry, Visitor},
};

/// How often the load of Redis is measured, and the home tier's isolates are counted.
const TICK: Duration = Duration::from_secs(1);
/// The length of a flash sale's rush.
const SALE: Duration = Duration::from_secs(5);
const SALE_ITEM: Item = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival {
        location: usize,
        is_for_sale: bool,
    },
    Act {
        visitor: usize,
    },
    /// Tasks of an isolate go on.
    Wake {
        isolate: usize,
    },
    /// An isolate of the edge tier sends a batch.
    Carry {
        holder: LeaseHolder,
        isolate: usize,
    },
    Stored(Item),
    Wanted(Item),
    Purge,
    SaleBegins,
    Tick,
    MeasurementBegins,
}

/// A place where isolates run.
struct Location {
    city: usize,
    isolates: Vec<usize>,
    /// Requests of visitors here that are not simulated, as a share of all requests.
    rest: f64,
    /// Visits that begin here in a second, and are simulated.
    arrivals: f64,
}

/// The home tier of one region.
struct Home {
    site: Site,
    isolates: Vec<usize>,
    /// Requests since the last tick.
    requests: f64,
    next: usize,
}

/// See the [module](self).
pub struct World {
    shared: Rc<Shared>,
    queue: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    events: u64,
    isolates: Vec<Isolate>,
    locations: Vec<Location>,
    /// By the region's city.
    homes: BTreeMap<usize, Home>,
    /// The caches of all places where isolates run.
    caches: Vec<LocationCache>,
    visitors: Vec<Option<Visitor>>,
    free: Vec<usize>,
    arrived: usize,
    trace: Vec<TraceEntry>,
    sale_until: Timestamp,
}

impl World {
    /// # Errors
    /// A message about the scenario's variables.
    pub fn new(scenario: Scenario) -> Result<Self, String> {
        let shared = Shared::new(scenario)?;
        let mut world = Self {
            shared,
            queue: BinaryHeap::new(),
            events: 0,
            isolates: Vec::new(),
            locations: Vec::new(),
            homes: BTreeMap::new(),
            caches: Vec::new(),
            visitors: Vec::new(),
            free: Vec::new(),
            arrived: 0,
            trace: Vec::new(),
            sale_until: START,
        };
        world.build();
        Ok(world)
    }

    fn next_arrival(&mut self, location: usize, now: Timestamp) {
        let wait = self.shared.exponential(1.0 / self.locations[location].arrivals);
        self.at(now + Duration::from_secs_f64(wait), Event::Arrival { location, is_for_sale: false });
    }

    fn at(&mut self, moment: Timestamp, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((moment, self.events, event)));
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(mut self) -> Summary {
        let end = START + self.shared.scenario.duration();
        while let Some(Reverse((now, _, event))) = self.queue.pop() {
            if now > end {
                break;
            }
            self.shared.clock.set(now);
            self.handle(event, now);
            self.take_due();
        }
        let scenario = &self.shared.scenario;
        let measured = scenario.measured();
        let memory = self.isolates.iter().map(|isolate| isolate.pages.held_bytes()).max().unwrap_or_default();
        let isolates = self.isolates.iter().map(|isolate| isolate.weight).sum();
        let (mut redis, tally) = (self.shared.redis.borrow_mut(), self.shared.tally.take());
        let peak = redis.take_peak();
        let (pages, page_bytes) = redis.stored();
        let usage = std::mem::take(&mut redis.usage);
        drop(redis);
        let scenario = scenario.clone();
        Summary { scenario, measured, tally, usage, peak, memory, isolates, pages, page_bytes, trace: self.trace }
    }

    /// Turns what Redis expects into events.
    fn take_due(&mut self) {
        let due = std::mem::take(&mut self.shared.redis.borrow_mut().due);
        let rest: f64 = self.locations.iter().map(|location| location.rest).sum();
        for (moment, due) in due {
            match due {
                Due::Stored(item) => self.at(moment, Event::Stored(item)),
                Due::Wanted(item) if rest > 0.0 => {
                    let rate = self.rate(item) * rest;
                    let wait = Duration::from_secs_f64(self.shared.exponential(1.0 / rate).min(1e6));
                    self.at(moment.max(self.shared.clock.now()) + wait, Event::Wanted(item));
                }
                Due::Wanted(_) => {}
            }
        }
    }

    /// Views of an item a second.
    fn rate(&self, item: Item) -> f64 {
        let scenario = &self.shared.scenario;
        let views = scenario.requests_per_second * scenario.traffic.views / scenario.requests_of_visit();
        views * self.shared.catalogue.borrow().share(item)
    }

    fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Arrival { location, is_for_sale } => {
                if is_for_sale {
                    self.next_buyer(location, now);
                } else {
                    self.next_arrival(location, now);
                }
                self.arrive(location, is_for_sale, now);
            }
            Event::Act { visitor } => self.act(visitor, now),
            Event::Wake { isolate } => {
                let wakes = self.isolates[isolate].go_on();
                self.wake(isolate, wakes);
            }
            Event::Carry { isolate, holder } => self.carry(isolate, holder, now),
            Event::Stored(item) => self.end_render(item, now),
            Event::Wanted(item) => self.render_for_the_rest(item, now),
            Event::Purge => self.purge(now),
            Event::SaleBegins => {
                self.sale_until = now + SALE;
                (0..self.locations.len()).for_each(|location| self.next_buyer(location, now));
            }
            Event::Tick => self.tick(now),
            Event::MeasurementBegins => {
                self.shared.tally.take();
                self.shared.redis.borrow_mut().begin_measurement(now);
            }
        }
    }

    fn wake(&mut self, isolate: usize, wakes: Option<Timestamp>) {
        if let Some(moment) = wakes {
            self.at(moment, Event::Wake { isolate });
        }
    }

    /// The renderer stores the page in Redis and in its location's cache.
    fn end_render(&mut self, item: Item, now: Timestamp) {
        let Some((holder, page)) = self.shared.redis.borrow_mut().end_render(item, now) else { return };
        let cache = self.cache_of_renderer(holder);
        self.caches[cache].put(item, page.render_number(), now);
    }

    /// The cache of the place where a page was rendered: of the isolate `holder`, or of one that is not simulated.
    fn cache_of_renderer(&self, holder: Option<usize>) -> usize {
        if let Some(holder) = holder {
            return self.isolates[holder].site().cache;
        }
        let homes: Vec<usize> = self.homes.values().map(|home| home.site.cache).collect();
        let place = to_usize(self.shared.chance() * to_f64(homes.len()));
        // Without a home tier, the only location is the first one.
        homes.get(place).copied().unwrap_or_default()
    }

    fn render_for_the_rest(&mut self, item: Item, now: Timestamp) {
        let shared = self.shared.clone();
        let limit = shared.config.page.rank_limit;
        let lacks = shared.redis.borrow().lacks(item, now);
        if !lacks {
            let fresh_until = shared.redis.borrow().fresh_until(item);
            // While a render is under way, its end brings the next event.
            if let Some(moment) = fresh_until.filter(|moment| *moment > now) {
                shared.redis.borrow_mut().due.push((moment, Due::Wanted(item)));
            }
        } else if u64::from(item) < limit || shared.scenario.shop.cache_control.is_some() {
            render(&shared, item, now, (u64::from(item) < limit, None));
        }
    }

    fn purge(&mut self, now: Timestamp) {
        let shared = self.shared.clone();
        if let Some(every) = shared.scenario.traffic.purge_every {
            self.at(now + every, Event::Purge);
        }
        let item = to_u32(shared.chance() * 100.0);
        shared.redis.borrow_mut().purge(item, now);
        shared.tally.borrow_mut().purges += 1.0;
    }

    fn tick(&mut self, now: Timestamp) {
        self.shared.redis.borrow_mut().measure(now);
        self.at(now + TICK, Event::Tick);
        let most = self.shared.scenario.platform.isolate_requests;
        let mut short = Vec::new();
        for home in self.homes.values_mut() {
            let wanted = to_usize((home.requests / TICK.as_secs_f64() / most).ceil()).max(1);
            home.requests = 0.0;
            short.extend((home.isolates.len()..wanted).map(|_| home.site.city));
        }
        for city in short {
            self.add_home_isolate(city);
        }
    }

    fn arrive(&mut self, location: usize, is_for_sale: bool, at: Timestamp) {
        let shared = self.shared.clone();
        self.arrived += 1;
        let number = self.arrived;
        let isolates = self.locations[location].isolates.len();
        let is_signed_in = !is_for_sale && shared.chance() < shared.scenario.traffic.signed_in;
        let token = is_signed_in.then(|| Visitor::make_token(number)).flatten();
        if let Some(token) = &token {
            shared.redis.borrow_mut().begin_session(token.as_str(), false, at);
        }
        let first = if is_for_sale { SALE_ITEM } else { shared.draw_item() };
        let visitor = Visitor {
            number,
            city: self.city_of_visitor(location),
            isolate: self.locations[location].isolates[to_usize(shared.chance() * to_f64(isolates)).min(isolates - 1)],
            is_signed_in,
            token,
            network: Visitor::make_network(number),
            has_cart: false,
            is_for_sale,
            next: Action::View(first),
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.visitors.push(None);
            self.visitors.len() - 1
        });
        self.visitors[slot] = Some(visitor);
        self.at(at, Event::Act { visitor: slot });
    }

    fn next_buyer(&mut self, location: usize, now: Timestamp) {
        if now < self.sale_until {
            let traffic = &self.shared.scenario.traffic;
            let rate = self.locations[location].arrivals * traffic.views * traffic.flash_sale;
            let wait = Duration::from_secs_f64(self.shared.exponential(1.0 / rate));
            self.at(now + wait, Event::Arrival { location, is_for_sale: true });
        }
    }

    /// The visitors of a single tier are everywhere; the others are near their location.
    fn city_of_visitor(&self, location: usize) -> usize {
        if self.shared.scenario.layout != Layout::OneTier || self.shared.scenario.is_local {
            return self.locations[location].city;
        }
        let mut place = to_u32(self.shared.chance() * 1e3);
        let is_here = |city: &cities::City| {
            let found = place < city.share;
            place = place.saturating_sub(city.share);
            found
        };
        CITIES.iter().position(is_here).unwrap_or(PRIMARY)
    }

    fn act(&mut self, slot: usize, now: Timestamp) {
        let Some(mut visitor) = self.visitors[slot].take() else { return };
        if self.shared.scenario.is_local {
            let Visitor { number, is_signed_in, next, .. } = visitor;
            self.trace.push(TraceEntry { at: now, visitor: number, is_signed_in, action: next });
        }
        let isolate = visitor.isolate;
        self.isolates[isolate].begin_request(now);
        let wait = match visitor.next {
            Action::View(item) => self.view(&visitor, item, now),
            other => self.write(&mut visitor, other, now),
        };
        let near = &CITIES[visitor.city];
        let there = &CITIES[self.isolates[isolate].site().city];
        let way = near.last_mile() + near.round_trip(there);
        let weight = self.isolates[isolate].weight;
        self.shared.tally.borrow_mut().request(near.continent, way + wait, weight);
        self.flush(isolate, now);
        if let Some((action, pause)) = visitor.proceed(&self.shared) {
            visitor.next = action;
            self.at(now + pause, Event::Act { visitor: slot });
            self.visitors[slot] = Some(visitor);
        } else {
            if let Some(token) = &visitor.token {
                self.shared.redis.borrow_mut().forget_session(token.as_str());
            }
            self.free.push(slot);
        }
    }

    /// The writes that every response may start.
    fn flush(&mut self, isolate: usize, now: Timestamp) {
        if self.homes.is_empty() {
            let wakes = self.isolates[isolate].write(now);
            self.wake(isolate, wakes);
        } else if let Some(holder) = self.isolates[isolate].activity.begin_relay(now) {
            self.at(now + EDGE_BATCH_WINDOW, Event::Carry { isolate, holder });
        }
    }

    /// A batch from the edge tier to the home tier, as `routes::tiers` sends it.
    fn carry(&mut self, isolate: usize, holder: LeaseHolder, now: Timestamp) {
        let batch = self.isolates[isolate].take_batch();
        if batch.is_empty() {
            self.isolates[isolate].activity.end_relay(holder);
            return;
        }
        let (city, weight) = (self.isolates[isolate].site().city, self.isolates[isolate].weight);
        let home = self.pick_home(city, weight);
        self.isolates[home].receive(&batch);
        let wakes = self.isolates[home].write(now);
        self.wake(home, wakes);
        let is_full = self.isolates[isolate].activity.has_full_batch();
        let pause = if is_full { Duration::ZERO } else { EDGE_BATCH_WINDOW };
        self.at(now + pause, Event::Carry { isolate, holder });
    }
}
