//! Every variable of `wrangler.toml` and every secret, read once and checked. Nothing else reads the environment.
//!
//! A variable that is empty counts as not set. All that is wrong is told at once, each with its name and its remedy.

use std::{fmt, time::Duration};

use http::{HeaderName, HeaderValue};
use url::Url;

pub mod item_routes;
mod presets;
mod reader;
pub mod rules;

use self::reader::Reader;
use crate::{
    config::{
        item_routes::ItemRoutes,
        rules::{CookieRules, UrlRules},
    },
    schema::keys::Keys,
};
use upstash_rest::Credentials;

/// The configuration of one Worker.
#[derive(Clone)]
pub struct Config {
    pub redis: RedisConfig,
    pub session: SessionConfig,
    pub cart: CartConfig,
    pub page: PageConfig,
    pub ranking: RankingConfig,
    pub flash: FlashConfig,
    pub insights: InsightsConfig,
    pub origin: OriginConfig,
    /// `ROWS_TABLE` or `ROWS_URL`; without either there is no row cache.
    pub rows: Option<RowsConfig>,
    /// `ROW_MEMORY`, default 1 s: how long an isolate's own copy of a row answers without Redis, a period of the row at most. 0: Redis
    /// is asked each time.
    pub row_memory: Duration,
    /// `SUBREQUESTS`, default 50: requests that one run of a cron may send, to Redis, to the rows' source and to D1 together.
    pub subrequests: u64,
    /// `TRAFFIC_INTERVAL`, default 2 s: an isolate under load writes what it counted that often, for one command. 0: nothing is
    /// counted.
    pub traffic_interval: Duration,
    /// `SERVICE_KEY` (secret, at least 16 characters): opens the service's part of the API. Without it that part is closed.
    pub service_key: Option<String>,
}

#[derive(Clone)]
pub struct RedisConfig {
    /// `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN` (secrets).
    pub credentials: Credentials,
    /// `REDIS_TIMEOUT_MS`, default 300 ms: what a visitor waits for Redis at most.
    pub timeout: Duration,
    /// `SHARDS`, default 1 (the book's layout) to 256: over how many parts the sessions are spread.
    pub keys: Keys,
}

#[derive(Clone)]
pub struct SessionConfig {
    /// `SESSION_KEYS` (secret; comma-separated, each at least 32 characters): the first signs, all are accepted.
    pub keys: Vec<String>,
    /// `SESSION_LIMIT`, default 10,000,000 live sessions; the oldest leave first.
    pub limit: u64,
    /// `SESSION_IDLE`, default 30 days, in seconds: a session not seen for so long ends.
    pub idle: Duration,
    /// `SESSION_MAX_AGE`, default 90 days, in seconds: a session ends so long after it began, whatever happens.
    pub max_age: Duration,
    /// `VIEW_WINDOW`, default 1,800 s: views of one item count once in so long, of a user's session, and of a network without one.
    pub view_window: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct CartConfig {
    /// `CART_MAX_LINES`, default 100 different items.
    pub max_lines: u32,
    /// `CART_MAX_QUANTITY`, default 999 of one item.
    pub max_quantity: u32,
}

#[derive(Clone)]
pub struct PageConfig {
    /// `PAGE_TTL`, default 300 s: how long a page is fresh at most; each takes 90 to 100 % of it, so that they do not
    /// expire together.
    pub ttl: Duration,
    /// `PAGE_STALE`, default 60 s: how long it may be served after that, while one request renders it anew.
    pub stale: Duration,
    /// `PAGE_RANK_LIMIT`, default 10,000: pages of items that rank below are cached.
    pub rank_limit: u64,
    /// `PAGE_MAX_BYTES`, default 1 MiB: larger pages are served, not stored.
    pub max_bytes: usize,
    /// `PAGE_TOTAL_BYTES`, default 64 MiB: what all stored pages may take of Redis; those stored longest ago make room. A quarter of
    /// what Upstash's free plan holds (256 MB), whose rest is for sessions and carts. 0: nothing is stored.
    pub total_bytes: u64,
    /// `PAGE_WAIT_MS`, default 2,000 ms: how long a visitor waits for a page that somebody else is rendering.
    pub wait: Duration,
    /// `PAGE_MEMORY`, default 5 s: how long an isolate's own copy of a page answers without Redis. So long a purge may take to reach
    /// another isolate than the one that it came to. 0: Redis is asked each time.
    pub memory: Duration,
    /// `PAGE_FORWARD_HEADERS`, default `accept, accept-language, user-agent`: which headers of the client may reach the origin
    /// with a request whose answer may be stored.
    pub forward: Forward,
    /// `ITEM_ROUTES`, `QUERY_IGNORED`, `QUERY_KEPT` and `PATHS_PERSONAL`: what a URL says about its page.
    pub urls: UrlRules,
    /// `COOKIES_IGNORED`, `COOKIES_PERSONAL`, `COOKIES_VARIED`, `COOKIES_DROPPED` and `CSRF_COOKIE`.
    pub cookies: CookieRules,
}

/// Which headers of a client reach the origin with a request whose answer may be stored, never its cookies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forward {
    /// `*`: all that are not about the connection, the cache or a person; for an origin that is trusted to name in `Vary` all that
    /// its answers depend on.
    All,
    Only(Vec<HeaderName>),
}

#[derive(Debug, Clone, Copy)]
pub struct RankingConfig {
    /// `RANKING_KEEP`, default 20,000: ranks beyond are dropped at a rescale.
    pub keep: u64,
    /// `RANKING_HALF_LIFE`, default 300 s: a view counts half after so long.
    pub half_life: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct InsightsConfig {
    /// `INSIGHTS_HALF_LIFE`, default 604,800 s (7 days): an order counts half after so long.
    pub half_life: Duration,
    /// As [`RankingConfig::keep`]: for how many items it is kept how often they were bought.
    pub keep: u64,
}

#[derive(Clone)]
pub struct FlashConfig {
    /// `FLASH_HOLD`, default 120 s: how long a reserved piece of a flash sale is held for its visitor.
    pub hold: Duration,
    /// `FLASH_CHECKOUT`, default `/flash/{sale}/checkout`: which URLs buy a reserved piece; the origin is told of it there.
    pub checkout: ItemRoutes,
}

#[derive(Clone)]
pub struct OriginConfig {
    /// `ORIGIN_URL`: the storefront behind us; without it the demo shop.
    pub url: Option<Url>,
    /// `ORIGIN_KEY` (secret): sent as `Edge-Key`, so that the origin knows who asks.
    pub key: Option<HeaderValue>,
    /// `ORIGIN_TIMEOUT`, default 30 s, until the head of the origin's answer.
    pub timeout: Duration,
    /// `CART_ROUTES`, default `/cart, /checkout`: the paths whose requests tell the origin what is in the visitor's cart.
    pub cart_routes: Vec<String>,
    /// `LOGIN_ROUTES`, default `/login, /signup`: the paths at or below which passwords are tried.
    pub login_routes: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum RowsConfig {
    /// A table of D1 with a column `id`.
    Table(String),
    /// An address that answers `GET ?ids=a,b` with a JSON list of rows, each with its `id`.
    Url(Url),
}

/// All that is wrong with the variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// One variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The variable's name.
    pub variable: &'static str,
    /// The problem and the remedy; never the value of a secret.
    pub problem: String,
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ConfigError { variable, problem }) in self.0.iter().enumerate() {
            write!(f, "{}{variable}: {problem}", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Config {
    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// [`ConfigErrors`] with every variable that is missing or wrong.
    pub fn from_lookup(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        let mut reader = Reader { get: &get, errors: Vec::new(), preset: None };
        reader.select_preset();
        let config = reader.config();
        match config {
            Some(config) if reader.errors.is_empty() => Ok(config),
            _ => Err(ConfigErrors(reader.errors)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let needed = [
            ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1:8079/"),
            ("UPSTASH_REDIS_REST_TOKEN", "a-token"),
            ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ];
        let find =
            |name: &str, list: &[(&str, &str)]| list.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        Config::from_lookup(|name| find(name, variables).or_else(|| find(name, &needed)))
    }

    #[test]
    fn the_defaults_are_the_books() {
        let config = read(&[]).ok().unwrap();
        assert_eq!(config.session.limit, 10_000_000);
        assert_eq!(config.redis.keys, Keys::BOOK);
        assert_eq!((config.page.ttl.as_secs(), config.page.rank_limit), (300, 10_000));
        assert_eq!((config.ranking.keep, config.ranking.half_life.as_secs()), (20_000, 300));
        assert_eq!((config.insights.keep, config.insights.half_life.as_secs()), (20_000, 604_800));
        assert_eq!(config.redis.credentials.url, "http://127.0.0.1:8079");
        assert!(config.origin.url.is_none() && config.rows.is_none());
        assert_eq!((config.page.memory.as_secs(), config.row_memory.as_secs()), (5, 1));
        assert_eq!(config.origin.cart_routes, ["/cart", "/checkout"]);
    }

    #[test]
    fn every_wrong_variable_names_itself_and_no_secret_shows() {
        for (variable, value) in [
            ("UPSTASH_REDIS_REST_URL", ""),
            ("UPSTASH_REDIS_REST_URL", "redis://x"),
            ("UPSTASH_REDIS_REST_TOKEN", ""),
            ("UPSTASH_REDIS_REST_TOKEN", "a\nb"),
            ("SESSION_KEYS", "short-secret"),
            ("SERVICE_KEY", "short-secret"),
            ("ORIGIN_KEY", "short-secret"),
            ("SESSION_LIMIT", "-1"),
            ("SESSION_IDLE", "soon"),
            ("SHARDS", "0"),
            ("SHARDS", "257"),
            ("PAGE_TTL", "1.5"),
            ("RANKING_HALF_LIFE", "0"),
            ("ITEM_ROUTES", "/products"),
            ("CART_ROUTES", "/cart, checkout"),
            ("CART_ROUTES", "/{item}"),
            ("LOGIN_ROUTES", "login"),
            ("FLASH_HOLD", "0"),
            ("FLASH_CHECKOUT", "/flash/{item}/checkout"),
            ("PAGE_FORWARD_HEADERS", "accept language"),
            ("ORIGIN_URL", "shop.example"),
            ("ROWS_TABLE", "a; DROP TABLE b"),
            ("SUBREQUESTS", "9"),
        ] {
            let errors = read(&[(variable, value)]).err().unwrap();
            assert_eq!(errors.0.len(), 1, "{errors}");
            assert!(errors.to_string().starts_with(variable), "{errors}");
            assert!(!errors.to_string().contains("short-secret"), "{errors}");
        }
        let two = read(&[("PAGE_TTL", "x"), ("SESSION_KEYS", "")]).err().unwrap();
        assert_eq!(two.0.len(), 2);
    }
}
