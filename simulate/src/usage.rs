//! The load of Redis: requests, commands, bytes, and the commands of its busiest keys.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::catalogue::Item;

/// Counts of all simulated isolates, each multiplied by the number of isolates that it stands for.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    pub requests: f64,
    pub commands: f64,
    /// Commands that change something. An Upstash Global database executes them again in each region.
    pub writes: f64,
    /// Bytes to and from Redis.
    pub bytes: f64,
    /// Commands on keys that all visitors share.
    shared: BTreeMap<&'static str, f64>,
    /// Commands on pages.
    pages: FxHashMap<Item, f64>,
}

/// The keys of a step.
#[derive(Debug, Clone, Copy)]
pub enum On {
    Page(Item),
    Key(&'static str),
    /// Keys of one visitor, which cannot become hot.
    Own,
}

impl Usage {
    /// Counts a request to Redis.
    pub fn request(&mut self, bytes: f64, weight: f64) {
        self.requests += weight;
        self.bytes += bytes * weight;
    }

    /// Counts reading commands.
    pub fn read(&mut self, commands: f64, on: On, weight: f64) {
        self.commands += commands * weight;
        // A script runs once for all of its keys.
        match on {
            On::Page(item) => *self.pages.entry(item).or_default() += commands * weight,
            On::Key(key) => *self.shared.entry(key).or_default() += commands * weight,
            On::Own => {}
        }
    }

    /// Counts writing commands.
    pub fn write(&mut self, commands: f64, on: On, weight: f64) {
        self.writes += commands * weight;
        self.read(commands, on, weight);
    }

    /// The key with the most commands, and their number.
    #[must_use]
    pub fn hottest(&self) -> (String, f64) {
        let page = self.pages.iter().map(|(item, commands)| (format!("cache:item-{item}"), *commands));
        let key = self.shared.iter().map(|(key, commands)| ((*key).to_owned(), *commands));
        page.chain(key).max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
    }
}
