//! The configuration: every variable of `wrangler.toml` and every secret, read once and checked. Nothing else reads
//! them.
//!
//! An empty variable counts as not set. One message reports everything that is wrong: each variable with its problem
//! and its remedy.
//!
//! - [`variables`]: the table of all variables. `docs/configuration.md` shows it.
//! - `reader`: reads a [`Config`] with this table.
//! - `groups`: the parts of a [`Config`].
//! - [`item_routes`]: URL patterns that name an item.
//! - [`rules`]: the rules for cookies, paths and query parameters.
//! - [`presets`]: the rules of well-known storefronts.

pub mod item_routes;
pub mod presets;
pub mod rules;
pub mod variables;

mod error;
mod groups;
mod reader;
mod secret;

use std::time::Duration;

pub use self::{
    error::{ConfigError, ConfigErrors},
    groups::{
        CartConfig, FlashConfig, InsightsConfig, MailTarget, OriginConfig, PageConfig, RankingConfig, RedisConfig,
        RowsConfig, SessionConfig,
    },
    rules::{Forward, HeaderRules},
    secret::Secret,
};

/// All settings. Its `Debug` output shows no secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub redis: RedisConfig,
    pub session: SessionConfig,
    pub cart: CartConfig,
    pub page: PageConfig,
    pub ranking: RankingConfig,
    pub flash: FlashConfig,
    pub insights: InsightsConfig,
    pub origin: OriginConfig,
    /// `ROWS_TABLE` or `ROWS_URL`. None: there is no row cache.
    pub rows: Option<RowsConfig>,
    /// `ROW_MEMORY`: the time for which an isolate answers with its own copy of a row.
    pub row_memory: Duration,
    /// `SUBREQUESTS`: the largest number of requests that one cron run sends.
    pub subrequests: u64,
    /// `TRAFFIC_INTERVAL`: a busy isolate writes its traffic counters once in this time. 0: it counts nothing.
    pub traffic_interval: Duration,
    /// `SERVICE_KEY`: opens the service part of the API. None: that part is closed.
    pub service_key: Option<Secret>,
}

impl Config {
    /// Reads the variables. `get` returns the value of a variable, or None if it is not set.
    ///
    /// # Errors
    /// [`ConfigErrors`] with every variable that is missing or wrong.
    pub fn from_lookup(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        reader::read(&get)
    }
}

#[cfg(test)]
pub(crate) mod tests;
