//! The beginning: locations, isolates, stored pages, and the visits under way.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use edgefront::ports::time::Timestamp;
use rustc_hash::FxHashSet;

use super::{Event, Home, Location, START, TICK, World};
use crate::{
    catalogue::Item,
    cities::{self, CITIES, PRIMARY},
    isolate::{Isolate, Site},
    location::LocationCache,
    numbers::to_usize,
    redis::Due,
    scenario::Layout,
};

impl World {
    pub(super) fn build(&mut self) {
        let shared = self.shared.clone();
        let scenario = &shared.scenario;
        let places: Vec<(usize, f64)> = if scenario.is_local || scenario.layout == Layout::OneTier {
            vec![(PRIMARY, 1.0)]
        } else {
            CITIES.iter().enumerate().map(|(city, place)| (city, f64::from(place.share) / 1e3)).collect()
        };
        for (city, share) in places {
            self.add_location(city, share);
        }
        if scenario.layout != Layout::OneTier {
            let mut homes: BTreeMap<usize, f64> = BTreeMap::new();
            for location in &self.locations {
                *homes.entry(self.home_of(location.city)).or_default() += location.rest;
            }
            for (city, rest) in homes {
                let site = self.site(city, rest);
                self.homes.insert(city, Home { site, isolates: Vec::new(), requests: 0.0, next: 0 });
                self.add_home_isolate(city);
            }
        }
        self.fill_pages();
        self.begin_visits();
        self.at(START + TICK, Event::Tick);
        self.at(START + scenario.warm_up(), Event::MeasurementBegins);
        if let Some(every) = scenario.traffic.purge_every {
            self.at(START + every, Event::Purge);
        }
        if scenario.traffic.flash_sale > 0.0 {
            let measured = scenario.measured();
            self.at(START + scenario.warm_up() + measured / 2, Event::SaleBegins);
        }
    }

    fn add_location(&mut self, city: usize, share: f64) {
        let scenario = self.shared.scenario.clone();
        let rate = scenario.requests_per_second * share;
        let all = if scenario.is_local { 1.0 } else { (rate / scenario.platform.isolate_requests).ceil().max(1.0) };
        let simulated = (all * scenario.sample()).round().max(1.0);
        let weight = all / simulated;
        let rest = share * (1.0 - 1.0 / weight);
        let site = self.site(city, rest);
        let mut isolates = Vec::new();
        for _ in 0..to_usize(simulated) {
            isolates.push(self.isolates.len());
            self.isolates.push(Isolate::new(&self.shared, self.isolates.len(), weight, site));
        }
        let arrivals = rate / weight / scenario.requests_of_visit();
        self.locations.push(Location { city, isolates, rest, arrivals });
    }

    /// The location of the home tier for visitors of a city.
    pub(super) fn home_of(&self, city: usize) -> usize {
        if self.shared.scenario.layout == Layout::Regions { cities::nearest_region(city) } else { PRIMARY }
    }

    /// The isolates of a place, with a new cache.
    fn site(&mut self, city: usize, rest: f64) -> Site {
        self.caches.push(LocationCache::new(rest));
        let home = self.home_of(city);
        let place = &CITIES[city];
        let cache = self.caches.len() - 1;
        Site { city, cache, read: place.round_trip(&CITIES[home]), write: place.round_trip(&CITIES[PRIMARY]) }
    }

    pub(super) fn add_home_isolate(&mut self, city: usize) {
        let weight = self.mean_weight();
        if let Some(home) = self.homes.get_mut(&city) {
            home.isolates.push(self.isolates.len());
            self.isolates.push(Isolate::new(&self.shared, self.isolates.len(), weight, home.site));
        }
    }

    /// How many requests a simulated request stands for, on average.
    fn mean_weight(&self) -> f64 {
        1.0 / (1.0 - self.locations.iter().map(|location| location.rest).sum::<f64>()).max(1e-9)
    }

    /// Stores the popular pages, as after a long time.
    fn fill_pages(&mut self) {
        let shared = self.shared.clone();
        if shared.scenario.starts_cold {
            return;
        }
        let config = &shared.config.page;
        let size = (shared.scenario.shop.page_bytes as u64).max(1);
        let most = (config.total_bytes / 16 * 14 / (size + 1_200)).min(config.rank_limit);
        let rate = shared.scenario.requests_per_second;
        let mut pages: Vec<(Timestamp, Item)> = Vec::new();
        for item in 0..u32::try_from(most).unwrap_or(u32::MAX).min(shared.scenario.shop.items) {
            // A page is fresh for PAGE_TTL; then the next request renders it again.
            let pause = 1.0 / (shared.catalogue.borrow().share(item) * rate);
            let age = shared.chance() * (config.ttl.as_secs_f64() + pause);
            if age < config.ttl.as_secs_f64() {
                pages.push((START - Duration::from_secs_f64(age), item));
            }
        }
        let stored: FxHashSet<Item> = pages.iter().map(|(_, item)| *item).collect();
        let popular = u32::try_from(config.rank_limit).unwrap_or(u32::MAX).min(shared.scenario.shop.items);
        let wanted = (0..popular).filter(|item| !stored.contains(item)).map(|item| (START, Due::Wanted(item)));
        shared.redis.borrow_mut().due.extend(wanted);
        pages.sort_unstable();
        for (stored, item) in pages {
            let mut random = shared.random.borrow_mut();
            let page = shared.origin.borrow_mut().page(Ok(()), stored, config, &mut random);
            if let Ok(page) = page {
                let number = page.render_number();
                shared.redis.borrow_mut().insert(item, Rc::new(page), stored);
                drop(random);
                let cache = self.cache_of_renderer(None);
                self.caches[cache].put(item, number, stored);
            }
        }
        self.take_due();
    }

    /// Visits are memoryless: a visit in progress has the same future as a new one.
    fn begin_visits(&mut self) {
        let traffic = &self.shared.scenario.traffic;
        let length = traffic.views * traffic.pause.as_secs_f64();
        let is_cold = self.shared.scenario.starts_cold;
        for location in 0..self.locations.len() {
            let arrivals = self.locations[location].arrivals;
            let under_way = if is_cold { 0 } else { to_usize((arrivals * length).round()) };
            for _ in 0..under_way {
                let wait = self.shared.exponential(self.shared.scenario.traffic.pause.as_secs_f64());
                self.arrive(location, false, START + Duration::from_secs_f64(wait));
            }
            self.next_arrival(location, START);
        }
    }
}
