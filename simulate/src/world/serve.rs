//! Requests of visitors, through the tiers.

use std::time::Duration;

use edgefront::{
    ports::time::{Clock, Timestamp},
    ranking::activity::Viewer,
};

use super::World;
use crate::{
    catalogue::Item,
    cities::CITIES,
    costs,
    isolate::{Served, Site, View},
    tally::Source,
    usage::On,
    visitor::{Action, Visitor},
};

impl World {
    /// The isolate of the home tier that gets the next request of an edge location.
    pub(super) fn pick_home(&mut self, city: usize, weight: f64) -> usize {
        self.shared.tally.borrow_mut().hops += weight;
        let now = self.shared.clock.now();
        let home = self.home_of(city);
        let Some(home) = self.homes.get_mut(&home) else { return 0 };
        home.requests += 1.0;
        home.next = (home.next + 1) % home.isolates.len();
        let isolate = home.isolates[home.next];
        self.isolates[isolate].begin_request(now);
        isolate
    }

    /// A request for a page. Returns how long it waits.
    pub(super) fn view(&mut self, visitor: &Visitor, item: Item, now: Timestamp) -> Duration {
        let isolate = visitor.isolate;
        let (weight, city) = (self.isolates[isolate].weight, self.isolates[isolate].site().city);
        let view = View {
            item,
            is_signed_in: visitor.is_signed_in,
            has_token: visitor.token.is_some(),
            is_confirmation: false,
            held: 0,
            weight,
        };
        let viewer = Viewer { token: visitor.token.as_ref(), network: visitor.network };
        let (mut served, recorder) = if self.homes.is_empty() {
            (self.answer_in_only_tier(isolate, view, now), isolate)
        } else {
            self.answer_in_edge_tier((isolate, city), view, now)
        };
        self.isolates[recorder].record(viewer, Some(item), now);
        if recorder != isolate {
            let wakes = self.isolates[recorder].write(now);
            self.wake(recorder, wakes);
        }
        self.note_staleness(item, &served, (now, weight));
        self.shared.tally.borrow_mut().page(served.source, weight);
        if served.confirm {
            served.confirm = false;
            self.confirm((isolate, city), view, (&served, now));
        }
        served.wait
    }

    fn note_staleness(&self, item: Item, served: &Served, (now, weight): (Timestamp, f64)) {
        let redis = self.shared.redis.borrow();
        let (Some((page, _)), Some(purged)) = (&served.page, redis.purged.get(&item)) else { return };
        if page.stored < *purged && *purged <= now {
            self.shared.tally.borrow_mut().stale.add(now.since(*purged), weight);
        }
    }

    fn answer_in_only_tier(&mut self, isolate: usize, view: View, now: Timestamp) -> Served {
        let held = self.held(isolate, view.item, now);
        let mut served = self.isolates[isolate].answer(View { held: held.render, ..view }, now);
        if served.source == Source::Redis {
            served.wait += held.took;
            if held.is_location_copy_of(&served) {
                served.source = Source::Location;
            }
            self.share(isolate, view.item, &served, now);
        }
        served
    }

    fn answer_in_edge_tier(&mut self, (isolate, city): (usize, usize), view: View, now: Timestamp) -> (Served, usize) {
        if let Some(served) = self.isolates[isolate].answer_from_memory(view, now) {
            return (served, isolate);
        }
        let held = self.held(isolate, view.item, now);
        let way = CITIES[city].round_trip(&CITIES[self.home_of(city)]);
        let home = self.pick_home(city, view.weight);
        let mut served = self.answer_in_only_tier(home, view, now);
        served.wait += held.took + way;
        if served.confirm {
            served.confirm = false;
            self.isolates[home].confirm(view, now);
        }
        let Some((page, confirmed)) = served.page.clone() else { return (served, home) };
        self.isolates[isolate].keep(view.item, (page, confirmed), now);
        served.source = match served.source {
            _ if held.is_location_copy_of(&served) => Source::Location,
            Source::Memory => Source::Home,
            _ => Source::Redis,
        };
        self.share(isolate, view.item, &served, now);
        (served, isolate)
    }

    /// The newest copy near an isolate.
    fn held(&mut self, isolate: usize, item: Item, now: Timestamp) -> Held {
        let own = self.isolates[isolate].fallback(item, now);
        if let Some(page) = own.as_ref().filter(|page| page.is_fresh(now)) {
            return Held { render: page.render_number(), is_from_location: false, took: Duration::ZERO };
        }
        let own = own.map_or(0, |page| page.render_number());
        let shared = self.shared.clone();
        if shared.scenario.is_local || shared.config.page.location.is_zero() {
            return Held { render: own, is_from_location: false, took: Duration::ZERO };
        }
        let took = shared.scenario.platform.location_cache;
        let current = shared.redis.borrow().stored_page(item, now);
        let views = self.rate(item);
        let cache = &mut self.caches[self.isolates[isolate].site().cache];
        let found = current.and_then(|page| cache.find(item, &page, (views, now), || shared.exponential(1.0)));
        Held { render: found.unwrap_or(own), is_from_location: found.is_some(), took }
    }

    /// Gives the location's cache a page that it lacks.
    fn share(&mut self, isolate: usize, item: Item, served: &Served, now: Timestamp) {
        if let Some((page, _)) = &served.page {
            self.caches[self.isolates[isolate].site().cache].put(item, page.render_number(), now);
        }
    }

    fn confirm(&mut self, (isolate, city): (usize, usize), view: View, (served, now): (&Served, Timestamp)) {
        if served.page.is_none() {
            return;
        }
        let view = View { is_confirmation: true, ..view };
        if self.homes.is_empty() {
            return self.isolates[isolate].confirm(view, now);
        }
        let home = self.pick_home(city, view.weight);
        let mut answer = self.answer_in_only_tier(home, view, now);
        if answer.confirm {
            answer.confirm = false;
            self.isolates[home].confirm(view, now);
        }
        match answer.page {
            Some(kept) => self.isolates[isolate].keep(view.item, kept, now),
            None => self.isolates[isolate].forget(view.item, now),
        }
        let wakes = self.isolates[home].write(now);
        self.wake(home, wakes);
    }

    /// A request that needs Redis and no stored page. Returns how long it waits.
    pub(super) fn write(&mut self, visitor: &mut Visitor, action: Action, now: Timestamp) -> Duration {
        let shared = self.shared.clone();
        let isolate = visitor.isolate;
        let Site { city, write, .. } = self.isolates[isolate].site();
        let weight = self.isolates[isolate].weight;
        let mut recorder = isolate;
        if !self.homes.is_empty() {
            recorder = self.pick_home(city, weight);
        }
        let delay = shared.redis.borrow().delay();
        let timeout = shared.config.redis.timeout.max(write * 2);
        if delay + write > timeout {
            shared.tally.borrow_mut().failures += weight;
        }
        let mut redis = shared.redis.borrow_mut();
        redis.usage.request(costs::REQUEST_BYTES + costs::RESPONSE_BYTES, weight);
        let mut wait = (write + delay).min(timeout);
        match action {
            Action::Add(_) if visitor.token.is_none() => {
                visitor.token = Visitor::make_token(visitor.number);
                if let Some(token) = &visitor.token {
                    redis.begin_session(token.as_str(), true, now);
                }
                redis.usage.write(costs::CART_WRITE_GUEST, On::Key("login:"), weight);
            }
            Action::Add(_) => {
                let is_seen = visitor.token.as_ref().is_some_and(|token| redis.is_seen(token.as_str(), now));
                let seen = if is_seen { costs::CART_WRITE_SEEN } else { 0.0 };
                redis.usage.write(costs::CART_WRITE + seen, On::Key("login:"), weight);
            }
            Action::CheckSession => redis.usage.read(costs::SESSION_CHECK, On::Key("login:"), weight),
            Action::CheckOut => {
                redis.usage.read(costs::DYNAMIC_PAGE, On::Key("login:"), weight);
                wait += shared.scenario.shop.render;
            }
            Action::Order => {
                redis.usage.write(costs::ORDER, On::Own, weight);
                wait += shared.scenario.shop.render;
            }
            Action::Reserve => redis.usage.write(costs::RESERVATION, On::Key("flash:"), weight),
            Action::View(_) => {}
        }
        visitor.has_cart |= matches!(action, Action::Add(_));
        drop(redis);
        if recorder != isolate {
            let wakes = self.isolates[recorder].write(now);
            self.wake(recorder, wakes);
        }
        wait
    }
}

/// The newest copy near a visitor.
struct Held {
    /// 0: none.
    render: u64,
    is_from_location: bool,
    took: Duration,
}

impl Held {
    /// Returns whether the location's cache had the page that was served.
    fn is_location_copy_of(&self, served: &Served) -> bool {
        let page = served.page.as_ref();
        self.is_from_location && page.is_some_and(|(page, _)| page.render_number() == self.render)
    }
}
