//! Reads the variables: one function for each kind of value, and one for each variable that is of no kind.

use std::{fmt, num::NonZeroU16, str::FromStr, time::Duration};

use http::{HeaderName, HeaderValue};
use url::Url;

use super::{
    CartConfig, Config, ConfigError, FlashConfig, Forward, InsightsConfig, OriginConfig, PageConfig, RankingConfig,
    RedisConfig, RowsConfig, SessionConfig,
    presets::Preset,
    rules::{CookieRules, Patterns, QueryRules, UrlRules, is_cookie_name},
};
use crate::{config::item_routes::ItemRoutes, schema::keys::Keys};
use upstash_rest::Credentials;

/// Reads one variable after another and remembers what is wrong.
pub(super) struct Reader<'a> {
    pub(super) get: &'a dyn Fn(&str) -> Option<String>,
    pub(super) errors: Vec<ConfigError>,
    pub(super) preset: Option<Preset>,
}

const DAY: u64 = 86_400;

impl Reader<'_> {
    /// None only if a variable without a default is missing or wrong; `errors` then says which.
    pub(super) fn config(&mut self) -> Option<Config> {
        let redis = self.redis();
        let keys = self.session_keys();
        let session = SessionConfig {
            keys: keys.unwrap_or_default(),
            limit: self.number("SESSION_LIMIT", 10_000_000, 1),
            idle: self.seconds("SESSION_IDLE", 30 * DAY, 60),
            max_age: self.seconds("SESSION_MAX_AGE", 90 * DAY, 60),
            view_window: self.seconds("VIEW_WINDOW", 1_800, 0),
        };
        let cart = CartConfig {
            max_lines: self.number("CART_MAX_LINES", 100, 1),
            max_quantity: self.number("CART_MAX_QUANTITY", 999, 1),
        };
        let page = PageConfig {
            ttl: self.seconds("PAGE_TTL", 300, 0),
            stale: self.seconds("PAGE_STALE", 60, 0),
            rank_limit: self.number("PAGE_RANK_LIMIT", 10_000, 0),
            max_bytes: self.number("PAGE_MAX_BYTES", 1 << 20, 0),
            total_bytes: self.number("PAGE_TOTAL_BYTES", 64 << 20, 0),
            wait: Duration::from_millis(self.number("PAGE_WAIT_MS", 2_000, 0)),
            memory: self.seconds("PAGE_MEMORY", 5, 0),
            forward: self.forward_headers(),
            urls: self.url_rules(),
            cookies: self.cookie_rules(),
        };
        let ranking = RankingConfig {
            keep: self.number("RANKING_KEEP", 20_000, 1),
            half_life: self.seconds("RANKING_HALF_LIFE", 300, 1),
        };
        let flash = FlashConfig { hold: self.seconds("FLASH_HOLD", 120, 1), checkout: self.flash_checkout() };
        let insights = InsightsConfig { half_life: self.seconds("INSIGHTS_HALF_LIFE", 7 * DAY, 1), keep: ranking.keep };
        let origin = OriginConfig {
            url: self.origin_url(),
            key: self.header("ORIGIN_KEY"),
            timeout: self.seconds("ORIGIN_TIMEOUT", 30, 1),
            cart_routes: self.paths("CART_ROUTES", "/cart, /checkout"),
            login_routes: self.paths("LOGIN_ROUTES", "/login, /signup"),
        };
        let (rows, row_memory) = (self.rows(), self.seconds("ROW_MEMORY", 1, 0));
        // Fewer would not do for a round of the rows.
        let subrequests = self.number("SUBREQUESTS", 50, 10);
        let traffic_interval = self.seconds("TRAFFIC_INTERVAL", 2, 0);
        let service_key = self.secret("SERVICE_KEY", 16);
        Some(Config {
            redis: redis?,
            session,
            cart,
            page,
            ranking,
            insights,
            flash,
            origin,
            rows,
            row_memory,
            subrequests,
            traffic_interval,
            service_key,
        })
    }

    fn origin_url(&mut self) -> Option<Url> {
        if !cfg!(feature = "demo") && self.text("ORIGIN_URL").is_none() {
            let remedy = "is not set, and this Worker has no shop of its own: set it, or build with the feature `demo`";
            self.wrong("ORIGIN_URL", remedy);
        }
        self.url("ORIGIN_URL")
    }

    fn redis(&mut self) -> Option<RedisConfig> {
        let keys = self.layout();
        let timeout = Duration::from_millis(self.number("REDIS_TIMEOUT_MS", 300, 1));
        let remedy = "is not set: put it into .dev.vars, or `wrangler secret put` it (Upstash's console shows it)";
        let (url, token) = (self.text("UPSTASH_REDIS_REST_URL"), self.text("UPSTASH_REDIS_REST_TOKEN"));
        if url.is_none() {
            self.wrong("UPSTASH_REDIS_REST_URL", remedy);
        }
        if token.is_none() {
            self.wrong("UPSTASH_REDIS_REST_TOKEN", remedy);
        }
        let url = self.url("UPSTASH_REDIS_REST_URL")?.to_string().trim_end_matches('/').to_owned();
        let Ok(mut authorization) = HeaderValue::try_from(format!("Bearer {}", token?)) else {
            self.wrong("UPSTASH_REDIS_REST_TOKEN", "cannot stand in a header: copy it again, without line breaks");
            return None;
        };
        authorization.set_sensitive(true);
        Some(RedisConfig { credentials: Credentials { url, authorization }, timeout, keys })
    }

    fn layout(&mut self) -> Keys {
        let shards = self.number("SHARDS", NonZeroU16::MIN, NonZeroU16::MIN);
        if shards.get() > Keys::MOST_SHARDS {
            self.wrong("SHARDS", format!("is {shards}, and must be at most {}", Keys::MOST_SHARDS));
        }
        Keys::new(shards)
    }

    fn session_keys(&mut self) -> Option<Vec<String>> {
        let rule = "must be one or more keys of at least 32 characters, separated by commas; `openssl rand -base64 32` makes one";
        let keys: Vec<_> =
            self.text("SESSION_KEYS").unwrap_or_default().split(',').map(|key| key.trim().to_owned()).collect();
        if keys.iter().any(|key| key.len() < 32) {
            self.wrong("SESSION_KEYS", rule);
            return None;
        }
        Some(keys)
    }

    fn url_rules(&mut self) -> UrlRules {
        let query = QueryRules {
            ignored: self.rules("QUERY_IGNORED", Patterns::parse),
            kept: self.rules("QUERY_KEPT", Patterns::parse),
        };
        let personal_paths = self.rules("PATHS_PERSONAL", |text| {
            let is_path = |path: &str| path.trim().is_empty() || path.trim().starts_with('/');
            if text.split(',').all(is_path) {
                Patterns::parse(text)
            } else {
                Err(format!("is {text:?}, and each path must begin with /"))
            }
        });
        UrlRules { items: self.item_routes(), query, personal_paths }
    }

    fn cookie_rules(&mut self) -> CookieRules {
        let csrf = self.text("CSRF_COOKIE");
        if csrf.as_deref().is_some_and(|name| !is_cookie_name(name)) {
            self.wrong("CSRF_COOKIE", "must be the name of one cookie, such as csrftoken");
        }
        CookieRules {
            ignored: self.rules("COOKIES_IGNORED", Patterns::parse),
            personal: self.rules("COOKIES_PERSONAL", Patterns::parse),
            varied: self.rules("COOKIES_VARIED", CookieRules::parse_varied),
            dropped: self.rules("COOKIES_DROPPED", CookieRules::parse_dropped),
            csrf,
        }
    }

    /// A list of rules: the variable's, else the preset's, else the default. A list that begins with `+` adds to the one that it
    /// would replace.
    fn rules<T: Default>(&mut self, variable: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let preset = self.preset.and_then(|preset| preset.get(variable));
        let layers =
            [Preset::DEFAULT.get(variable).map(str::to_owned), preset.map(str::to_owned), self.explicit(variable)];
        let text = layers.into_iter().flatten().fold(String::new(), |inherited, list| match list.strip_prefix('+') {
            Some(more) => format!("{inherited}, {more}"),
            None => list,
        });
        parse(&text).unwrap_or_else(|problem| {
            self.wrong(variable, problem);
            T::default()
        })
    }

    fn item_routes(&mut self) -> ItemRoutes {
        let text = self.text("ITEM_ROUTES");
        match ItemRoutes::parse(text.as_deref().unwrap_or(ItemRoutes::DEFAULT)) {
            Ok(routes) => routes,
            Err(problem) => {
                self.wrong("ITEM_ROUTES", problem);
                ItemRoutes::default()
            }
        }
    }

    fn forward_headers(&mut self) -> Forward {
        let text =
            self.text("PAGE_FORWARD_HEADERS").unwrap_or_else(|| "accept, accept-language, user-agent".to_owned());
        if text == "*" {
            return Forward::All;
        }
        let names: Result<Vec<_>, _> = text.split(',').map(|name| HeaderName::try_from(name.trim())).collect();
        Forward::Only(names.unwrap_or_else(|_| {
            self.wrong("PAGE_FORWARD_HEADERS", format!("is {text:?}, and must be names of headers, or *"));
            Vec::new()
        }))
    }

    fn paths(&mut self, variable: &'static str, default: &str) -> Vec<String> {
        let text = self.text(variable).unwrap_or_else(|| default.to_owned());
        let paths: Vec<_> = text.split(',').map(|path| path.trim().to_owned()).collect();
        if paths.iter().any(|path| !path.starts_with('/') || path.contains(['?', '#', '{'])) {
            self.wrong(variable, format!("is {text:?}, and must be paths separated by commas, such as /cart"));
        }
        paths
    }

    fn flash_checkout(&mut self) -> ItemRoutes {
        let text = self.text("FLASH_CHECKOUT").unwrap_or_else(|| "/flash/{sale}/checkout".to_owned());
        ItemRoutes::parse_with("{sale}", &text).unwrap_or_else(|problem| {
            self.wrong("FLASH_CHECKOUT", problem);
            ItemRoutes::default()
        })
    }

    fn rows(&mut self) -> Option<RowsConfig> {
        let url = self.url("ROWS_URL").map(RowsConfig::Url);
        let table = self.text("ROWS_TABLE");
        let is_name = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !name.starts_with(|first: char| first.is_ascii_digit())
        };
        match (table, url) {
            (Some(_), Some(_)) => {
                self.wrong("ROWS_URL", "is set, and so is ROWS_TABLE: rows come from one of them, unset the other");
            }
            (Some(table), None) if is_name(&table) => return Some(RowsConfig::Table(table)),
            (Some(_), None) => self.wrong("ROWS_TABLE", "must be a table's name: letters, digits and _"),
            (None, url) => return url,
        }
        None
    }

    /// The variable, or the preset's value for it.
    fn text(&self, variable: &str) -> Option<String> {
        let preset = || self.preset.and_then(|preset| preset.get(variable)).map(str::to_owned);
        self.explicit(variable).or_else(preset)
    }

    fn explicit(&self, variable: &str) -> Option<String> {
        (self.get)(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Selects the preset before any other variable is read.
    pub(super) fn select_preset(&mut self) {
        let Some(name) = self.explicit("PRESET") else { return };
        self.preset = Preset::find(&name);
        if self.preset.is_none() {
            self.wrong("PRESET", format!("is {name:?}, and must be one of {}", Preset::names()));
        }
    }

    fn wrong(&mut self, variable: &'static str, problem: impl Into<String>) {
        self.errors.push(ConfigError { variable, problem: problem.into() });
    }

    fn number<T: FromStr + PartialOrd + fmt::Display + Copy>(
        &mut self,
        variable: &'static str,
        default: T,
        least: T,
    ) -> T {
        match self.text(variable).map(|value| (value.parse::<T>(), value)) {
            None => default,
            Some((Ok(number), _)) if number >= least => number,
            Some((_, value)) => {
                self.wrong(variable, format!("is {value:?}, and must be a whole number, at least {least}"));
                default
            }
        }
    }

    fn seconds(&mut self, variable: &'static str, default: u64, least: u64) -> Duration {
        // At most a hundred years: sums of such times cannot overflow.
        Duration::from_secs(self.number(variable, default, least).min(36_500 * DAY))
    }

    fn url(&mut self, variable: &'static str) -> Option<Url> {
        let value = self.text(variable)?;
        match Url::parse(&value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            _ => {
                self.wrong(variable, "must be an address that begins with http:// or https://");
                None
            }
        }
    }

    fn secret(&mut self, variable: &'static str, least: usize) -> Option<String> {
        let secret = self.text(variable)?;
        if secret.len() < least {
            self.wrong(variable, format!("has {} characters, and must have at least {least}", secret.len()));
        }
        Some(secret)
    }

    fn header(&mut self, variable: &'static str) -> Option<HeaderValue> {
        let secret = self.secret(variable, 16)?;
        let Ok(mut value) = HeaderValue::try_from(secret) else {
            self.wrong(variable, "cannot stand in a header: use visible ASCII characters");
            return None;
        };
        value.set_sensitive(true);
        Some(value)
    }
}
