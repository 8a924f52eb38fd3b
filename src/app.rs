//! All parts put together. There is one [`App`] for each isolate, made before the first request; all that
//! changes in it is plain data: no request's own things.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use crate::{
    config::{Config, RedisConfig},
    database::Database,
    fetch::{Fetch, Response},
    limits::Limits,
    page_cache, row_cache,
    seen::Seen,
    session::Keyring,
    time::Clock,
    traffic::Traffic,
    upstash::Redis,
};

/// What the handlers and the jobs work with.
pub struct App {
    pub config: Config,
    /// Reads and writes the session cookie.
    pub keyring: Keyring,
    pub redis: Redis,
    pub fetch: Rc<dyn Fetch>,
    pub clock: Rc<dyn Clock>,
    /// What happened since it was last written to Redis.
    pub traffic: Traffic,
    /// D1, where there is one: the demo's catalogue and the row cache's table.
    pub database: Option<Rc<dyn Database>>,
    /// How often somebody may try; by default, without limits.
    pub limits: Limits,
    /// What this isolate remembers of pages.
    pub pages: page_cache::Memory,
    /// What this isolate remembers of rows.
    pub rows: row_cache::Memory,
    /// Who was here since that was last written to Redis.
    pub seen: Seen,
}

/// Work that the visitor does not wait for.
pub type Later = LocalBoxFuture<'static, ()>;

/// A response, and the work that goes on behind it (at most 30 s in a Worker: `waitUntil`).
pub struct Answer {
    pub response: Response,
    pub later: Vec<Later>,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(config: Config, fetch: Rc<dyn Fetch>, clock: Rc<dyn Clock>, database: Option<Rc<dyn Database>>) -> Self {
        let RedisConfig { credentials, timeout, keys } = config.redis.clone();
        let redis = Redis::new(fetch.clone(), clock.clone(), credentials, timeout, keys);
        let keyring = Keyring::new(&config.session);
        let traffic = Traffic::new(config.traffic_interval);
        let (pages, rows) = (page_cache::Memory::new(config.page.memory), row_cache::Memory::new(config.row_memory));
        let seen = Seen::new(&config.session);
        let limits = Limits::default();
        Self { config, keyring, redis, fetch, clock, traffic, database, limits, pages, rows, seen }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self { response, later: Vec::new() }
    }
}
