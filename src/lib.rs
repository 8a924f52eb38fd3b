//! edgefront answers requests for a storefront at the edge and keeps the storefront's hot state in Redis over REST.
//!
//! `ARCHITECTURE.md` draws the request flow and states the import rules. The modules, from the platform inwards:
//!
//! - `edge`: the Worker's events; the only module that names the platform, built for wasm only.
//! - [`routes`]: HTTP in, HTTP out: the storefront, the API under `/_edge/v1`, the dashboard.
//! - [`page_cache`]: a shared HTTP cache for the storefront's pages.
//! - [`proxy`]: requests to the origin, and the `Edge-*` headers that edgefront and the origin exchange.
//! - [`sessions`]: login tokens: check, touch, log in, log out, expire.
//! - [`carts`]: carts and abandoned carts.
//! - [`orders`]: orders, flash sales, insights ("bought also bought").
//! - [`row_cache`]: database rows, refreshed on a schedule.
//! - [`ranking`]: views: recorded, counted, ranked, rescaled.
//! - [`jobs`]: the cron jobs.
//! - [`metrics`]: traffic counters, storage statistics, the log.
//! - [`schema`]: the Redis schema: keys, ids, tokens, shards, scripts.
//! - [`config`]: every variable, read once and checked.
//! - [`ports`]: the services of the platform: time, random bits, HTTP, SQL, rate limits.
//! - `demo`: the built-in shop (feature `demo`).
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use std::rc::Rc;

use crate::{
    config::{Config, RedisConfig},
    metrics::traffic::TrafficCounters,
    ports::{
        circuit_breaker::CircuitBreaker, database::Database, fetch::Fetch, home::Home, html::Html,
        rate_limit::RateLimits, semaphore::MemorySemaphore, time::Clock,
    },
    ranking::activity::Activity,
    schema::redis::Redis,
    sessions::Keyring,
};

pub mod carts;
pub mod config;
#[cfg(feature = "demo")]
pub mod demo;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod jobs;
pub mod metrics;
pub mod orders;
pub mod page_cache;
pub mod ports;
pub mod proxy;
pub mod ranking;
pub mod routes;
pub mod row_cache;
pub mod schema;
pub mod sessions;

/// The parts of one isolate, built before its first request. Its mutable state is plain data that requests share.
pub struct App {
    pub config: Config,
    /// Reads and signs the session cookie.
    pub keyring: Keyring,
    pub redis: Rc<Redis>,
    pub fetch: Rc<dyn Fetch>,
    /// The home tier. None: this isolate is the only tier, or the home tier itself.
    pub home: Option<Rc<dyn Home>>,
    pub clock: Rc<dyn Clock>,
    /// Finds the holes of pages.
    pub html: Rc<dyn Html>,
    /// Traffic counters that are not yet written to Redis.
    pub traffic: Rc<TrafficCounters>,
    /// D1, where there is one: the demo's catalogue and the row cache's table.
    pub database: Option<Rc<dyn Database>>,
    /// The platform's rate limits. Without bindings everything is allowed.
    pub limits: RateLimits,
    /// The circuit breaker for Redis; in the edge tier, for the home tier.
    pub circuit: CircuitBreaker,
    /// The isolate's memory of pages.
    pub pages: page_cache::PageMemory,
    /// Bounds the memory of pages and fragments that are being assembled, rendered or stored.
    pub semaphore: MemorySemaphore,
    /// The location's cache of pages.
    pub location: page_cache::LocationPages,
    /// The isolate's memory of idle jobs.
    pub jobs: jobs::JobMemory,
    /// The isolate's memory of rows.
    pub rows: row_cache::RowMemory,
    /// Session activity and views that are not yet written to Redis.
    pub activity: Rc<Activity>,
}

impl App {
    /// Builds the parts from the configuration, without rate limits, a cache of the location and another tier.
    #[must_use]
    pub fn new(
        config: Config,
        fetch: Rc<dyn Fetch>,
        clock: Rc<dyn Clock>,
        html: Rc<dyn Html>,
        database: Option<Rc<dyn Database>>,
    ) -> Self {
        let RedisConfig { credentials, timeout, keys, has_read_regions } = config.redis.clone();
        let redis = Redis::new(fetch.clone(), clock.clone(), credentials, timeout, keys);
        let redis = Rc::new(redis.with_read_regions(has_read_regions));
        let keyring = Keyring::new(&config.session);
        let traffic = Rc::new(TrafficCounters::new(config.traffic_interval));
        let (pages, rows) =
            (page_cache::PageMemory::new(config.page.memory), row_cache::RowMemory::new(config.row_memory));
        let location = page_cache::LocationPages::new(None, config.page.location, traffic.clone(), fetch.clone());
        let activity = Rc::new(Activity::new(&config.session));
        let (limits, circuit) = (RateLimits::default(), CircuitBreaker::default());
        Self {
            config,
            keyring,
            redis,
            fetch,
            home: None,
            clock,
            html,
            traffic,
            database,
            limits,
            circuit,
            pages,
            semaphore: MemorySemaphore::default(),
            location,
            jobs: jobs::JobMemory::default(),
            rows,
            activity,
        }
    }

    /// The source of the row cache; None without `ROWS_TABLE` and `ROWS_URL`.
    #[must_use]
    pub fn row_source(&self) -> Option<row_cache::RowSource<'_>> {
        let config = self.config.rows.as_ref()?;
        Some(row_cache::RowSource::new(config, &*self.fetch, self.database.as_deref(), &*self.clock))
    }
}
