//! Counts of responses by source, and their times.

use std::{collections::BTreeMap, time::Duration};

use crate::{cities::Continent, histogram::Histogram};

/// Where the answer to a request for a page came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The memory of the isolate near the visitor, or of the only tier.
    Memory,
    /// The location's cache, confirmed by the home tier or Redis.
    Location,
    /// The memory of an isolate of the home tier.
    Home,
    /// Redis.
    Redis,
    /// The origin, and the page was stored.
    Stored,
    /// The origin: the item is not popular.
    Unpopular,
    /// A copy that may be old, because Redis did not answer.
    Fallback,
    /// The origin, because Redis did not answer.
    Forwarded,
}

impl Source {
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::Location,
        Self::Home,
        Self::Redis,
        Self::Stored,
        Self::Unpopular,
        Self::Fallback,
        Self::Forwarded,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Location => "location",
            Self::Home => "home",
            Self::Redis => "Redis",
            Self::Stored => "stored",
            Self::Unpopular => "unpopular",
            Self::Fallback => "fallback",
            Self::Forwarded => "forwarded",
        }
    }

    /// Returns whether the origin did not have to render.
    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Memory | Self::Location | Self::Home | Self::Redis | Self::Fallback)
    }
}

/// Counts, each multiplied by the number of isolates that the isolate stands for.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// All requests of visitors.
    pub requests: f64,
    /// The requests that were simulated.
    pub simulated: f64,
    pages: BTreeMap<Source, f64>,
    latency: BTreeMap<Continent, Histogram>,
    /// Ages of purged pages when they were served, since the purge.
    pub stale: Histogram,
    pub purges: f64,
    /// Requests between the tiers.
    pub hops: f64,
    /// Requests to the origin.
    pub renders: f64,
    /// Requests of visitors that failed because Redis did not answer.
    pub failures: f64,
}

impl Tally {
    pub fn request(&mut self, continent: Continent, latency: Duration, weight: f64) {
        self.requests += weight;
        self.simulated += 1.0;
        self.latency.entry(continent).or_default().add(latency, weight);
    }

    pub fn page(&mut self, source: Source, weight: f64) {
        *self.pages.entry(source).or_default() += weight;
    }

    /// The share of the pages from one source.
    #[must_use]
    pub fn share(&self, source: Source) -> f64 {
        self.pages.get(&source).copied().unwrap_or_default() / self.page_views().max(f64::MIN_POSITIVE)
    }

    fn page_views(&self) -> f64 {
        self.pages.values().sum()
    }

    /// The share of the requests that failed because Redis did not answer.
    #[must_use]
    pub fn failed_share(&self) -> f64 {
        self.failures / self.requests.max(f64::MIN_POSITIVE)
    }

    /// The share of the pages that the origin did not render.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        Source::ALL.into_iter().filter(|source| source.is_hit()).map(|source| self.share(source)).sum()
    }

    #[must_use]
    pub fn latency(&self, continent: Continent, quantile: f64) -> Duration {
        self.latency.get(&continent).map(|times| times.quantile(quantile)).unwrap_or_default()
    }
}
