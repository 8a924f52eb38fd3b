//! The variables that belong together. Each field names its variable; `variables` has the unit, the default and the
//! range.

use std::{fmt, time::Duration};

use http::HeaderValue;
use url::Url;

use super::{
    item_routes::ItemRoutes,
    rules::{CookieRules, HeaderRules, HoleRules, PathPatterns, UrlRules},
    secret::Secret,
};
use crate::schema::keys::Keys;
use upstash_rest::Credentials;

#[derive(Clone)]
pub struct RedisConfig {
    /// `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`.
    pub credentials: Credentials,
    /// `REDIS_TIMEOUT_MS`: the longest time that a visitor's request waits for Redis.
    pub timeout: Duration,
    /// `SHARDS` and `SHARDS_KNOWN`: the layout of the keys.
    pub keys: Keys,
    /// `READ_REGIONS`: Redis has read replicas in other regions.
    pub has_read_regions: bool,
}

impl PartialEq for RedisConfig {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.credentials, &other.credentials);
        (&one.url, &one.authorization) == (&two.url, &two.authorization)
            && (self.timeout, self.keys, self.has_read_regions) == (other.timeout, other.keys, other.has_read_regions)
    }
}

/// Without the credentials.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig").field("timeout", &self.timeout).field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SessionConfig {
    /// `SESSION_KEYS`: the first key signs the cookies, all keys are accepted.
    pub signing_keys: Vec<Secret>,
    /// `SESSION_LIMIT`: the largest number of live sessions.
    pub limit: u64,
    /// `SESSION_IDLE`: a session ends if it was not seen for this time.
    pub idle: Duration,
    /// `SESSION_MAX_AGE`: a session ends at this age.
    pub max_age: Duration,
    /// `VIEW_WINDOW`: views of the same item count once in this time.
    pub view_window: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CartConfig {
    /// `CART_MAX_LINES`: the largest number of different items in a cart.
    pub max_lines: u32,
    /// `CART_MAX_QUANTITY`: the largest number of pieces of one item in a cart.
    pub max_quantity: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PageConfig {
    /// `PAGE_TTL`: the freshness lifetime of a page if the origin states none.
    pub ttl: Duration,
    /// `PAGE_STALE`: the time after it for which such a page is served stale.
    pub stale: Duration,
    /// `PAGE_RANK_LIMIT`: an item's page is stored if the item ranks below this number, or if the origin states its
    /// freshness.
    pub rank_limit: u64,
    /// `PAGE_MAX_BYTES`: larger pages are not stored.
    pub max_bytes: usize,
    /// `PAGE_TOTAL_BYTES`: the largest size of all stored pages in Redis together.
    pub total_bytes: u64,
    /// `PAGE_WAIT_MS`: the time for which a visitor waits for another request's render. Then the visitor's request renders, too.
    pub wait: Duration,
    /// `PAGE_MEMORY`: the time for which an isolate answers with its own copy of a page.
    pub memory: Duration,
    /// `PAGE_LOCATION_MS`: the longest time that a lookup waits for the location's cache. Zero does not use that cache.
    pub location: Duration,
    /// `PAGE_FORWARD_HEADERS`, `HEADERS_VARIED` and `HEADERS_NORMALIZED`: the client's headers that may reach the origin
    /// with a request whose response may be stored.
    pub headers: HeaderRules,
    /// `ITEM_ROUTES`, `QUERY_IGNORED`, `QUERY_KEPT`, `PATHS_PERSONAL`, `PATHS_SHARED` and
    /// `WRITES_PERSONAL`: the rules for URLs.
    pub urls: UrlRules,
    /// `COOKIES_IGNORED`, `COOKIES_PERSONAL`, `COOKIES_VARIED`, `COOKIES_DROPPED`, `COOKIES_HOLES` and `CSRF_COOKIE`:
    /// the rules for cookies.
    pub cookies: CookieRules,
    /// `HOLES`: the parts of shared pages that belong to one visitor.
    pub holes: HoleRules,
    /// `HOLES_WAIT_MS`: the longest time that the rest of a page waits for the content of its holes.
    pub holes_wait: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankingConfig {
    /// `RANKING_KEEP`: the number of items that a rescale keeps.
    pub keep: u64,
    /// `RANKING_HALF_LIFE`: after this time, a view counts half.
    pub half_life: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InsightsConfig {
    /// `INSIGHTS_HALF_LIFE`: after this time, an order counts half.
    pub half_life: Duration,
    /// `RANKING_KEEP`: the number of items whose totals are kept.
    pub keep: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FlashConfig {
    /// `FLASH_HOLD`: the time for which a reserved piece is held for its visitor.
    pub hold: Duration,
    /// `FLASH_CHECKOUT`: the URLs that buy a reserved piece.
    pub checkout: ItemRoutes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OriginConfig {
    /// `ORIGIN_URL`: the storefront behind edgefront. None: the demo shop.
    pub url: Option<Url>,
    /// `ORIGIN_KEY`, sent as `Edge-Key`. It is marked as sensitive, so its `Debug` output hides it.
    pub key: Option<HeaderValue>,
    /// `ORIGIN_TIMEOUT`: the time limit for the origin to send the head of its response.
    pub timeout: Duration,
    /// `CART_ROUTES`: requests to these paths carry the visitor's cart to the origin.
    pub cart_routes: PathPatterns,
    /// `LOGIN_ROUTES` and the paths below them, where visitors sign in.
    pub login_routes: PathPatterns,
    /// `DEMO_URL`: the address of the demo shop, without a slash at its end. None: the host of each request.
    pub site: Option<String>,
    /// `DEMO_MAIL`: where the demo shop sends its mail. None: it sends none.
    pub mail: Option<MailTarget>,
}

/// Where the demo shop sends its mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTarget {
    Log,
}

/// The source of rows.
#[derive(Debug, Clone, PartialEq)]
pub enum RowsConfig {
    /// `ROWS_TABLE`: a D1 table with a column `id`.
    Table(String),
    /// `ROWS_URL`: an address that answers `GET ?ids=a,b` with a JSON list of rows, each with its `id`. `key` is that
    /// of [`OriginConfig::key`] if the address has the origin of `ORIGIN_URL`; no other host learns the key.
    Url { url: Url, key: Option<HeaderValue> },
}
