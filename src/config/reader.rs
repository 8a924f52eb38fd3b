//! Reads a [`Config`] with the table of [`variables`](super::variables). It has a function for each kind of value.

use std::{num::NonZeroU16, time::Duration};

use http::HeaderValue;
use url::{Position, Url};

use super::{
    CartConfig, Config, ConfigError, ConfigErrors, FlashConfig, Forward, HeaderRules, InsightsConfig, MailTarget,
    OriginConfig, PageConfig, RankingConfig, RedisConfig, RowsConfig, Secret, SessionConfig,
    item_routes::ItemRoutes,
    presets::Preset,
    rules::{
        Choices, CookieRules, HoleRules, NormalizedHeader, PathPatterns, Patterns, QueryRules, UrlRules, entries,
        is_cookie_name, selecting_headers,
    },
    variables::{
        CART_MAX_LINES, CART_MAX_QUANTITY, CART_ROUTES, CHOICES, COOKIES_DROPPED, COOKIES_HOLES, COOKIES_IGNORED,
        COOKIES_PERSONAL, COOKIES_VARIED, CSRF_COOKIE, DEMO_MAIL, DEMO_URL, FLASH_CHECKOUT, FLASH_HOLD,
        HEADERS_NORMALIZED, HEADERS_VARIED, HOLES, HOLES_WAIT_MS, INSIGHTS_HALF_LIFE, ITEM_ROUTES, LOGIN_ROUTES,
        ORIGIN_KEY, ORIGIN_TIMEOUT, ORIGIN_URL, PAGE_FORWARD_HEADERS, PAGE_LOCATION_MS, PAGE_MAX_BYTES, PAGE_MEMORY,
        PAGE_RANK_LIMIT, PAGE_STALE, PAGE_TOTAL_BYTES, PAGE_TTL, PAGE_WAIT_MS, PATHS_PERSONAL, PATHS_SHARED, PRESET,
        QUERY_IGNORED, QUERY_KEPT, RANKING_HALF_LIFE, RANKING_KEEP, READ_REGIONS, REDIS_TIMEOUT_MS, ROW_MEMORY,
        ROWS_TABLE, ROWS_URL, SERVICE_KEY, SESSION_IDLE, SESSION_KEYS, SESSION_LIMIT, SESSION_MAX_AGE, SHARDS,
        SHARDS_KNOWN, SUBREQUESTS, TRAFFIC_INTERVAL, UPSTASH_REDIS_REST_TOKEN, UPSTASH_REDIS_REST_URL, VIEW_WINDOW,
        Variable, WRITES_PERSONAL,
    },
};
use crate::schema::keys::Keys;
use upstash_rest::Credentials;

/// More pages of the demo shop that show the visitor's cart.
const DEMO_CART_ROUTES: &str = "/account, /orders/*";
/// The demo shop's pages that reset a password. Their requests are limited like those that sign in.
const DEMO_LOGIN_ROUTES: &str = "/reset";

/// Reads all variables.
///
/// # Errors
/// [`ConfigErrors`] with every variable that is missing or wrong.
pub(super) fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Config, ConfigErrors> {
    let mut reader = Reader { get, errors: Vec::new(), preset: None };
    reader.preset = reader.preset();
    let config = reader.config();
    config.filter(|_| reader.errors.is_empty()).ok_or(ConfigErrors(reader.errors))
}

/// Reads one variable after another and collects the errors. A function that adds an error returns an arbitrary value.
struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    errors: Vec<ConfigError>,
    preset: Option<Preset>,
}

impl Reader<'_> {
    /// None if Redis' address or token is missing or wrong.
    fn config(&mut self) -> Option<Config> {
        let redis = self.redis();
        let session = SessionConfig {
            signing_keys: self.session_keys(),
            limit: self.number(&SESSION_LIMIT),
            idle: self.seconds(&SESSION_IDLE),
            max_age: self.seconds(&SESSION_MAX_AGE),
            view_window: self.seconds(&VIEW_WINDOW),
        };
        let cart = CartConfig { max_lines: self.count(&CART_MAX_LINES), max_quantity: self.count(&CART_MAX_QUANTITY) };
        let page = self.page();
        let ranking = RankingConfig { keep: self.number(&RANKING_KEEP), half_life: self.seconds(&RANKING_HALF_LIFE) };
        let flash =
            FlashConfig { hold: self.seconds(&FLASH_HOLD), checkout: self.item_routes(&FLASH_CHECKOUT, "{sale}") };
        let insights = InsightsConfig { half_life: self.seconds(&INSIGHTS_HALF_LIFE), keep: ranking.keep };
        let origin = self.origin();
        let (rows, row_memory) = (self.rows(&origin), self.seconds(&ROW_MEMORY));
        let subrequests = self.number(&SUBREQUESTS);
        let traffic_interval = self.seconds(&TRAFFIC_INTERVAL);
        let service_key = self.secret(&SERVICE_KEY).map(Secret::new);
        Some(Config {
            redis: redis?,
            session,
            cart,
            page,
            ranking,
            flash,
            insights,
            origin,
            rows,
            row_memory,
            subrequests,
            traffic_interval,
            service_key,
        })
    }

    fn redis(&mut self) -> Option<RedisConfig> {
        let (timeout, keys) = (self.milliseconds(&REDIS_TIMEOUT_MS), self.layout());
        let has_read_regions = self.number(&READ_REGIONS) == 1;
        let (url, token) = (self.required(&UPSTASH_REDIS_REST_URL), self.required(&UPSTASH_REDIS_REST_TOKEN));
        let url = self.parse_url(&UPSTASH_REDIS_REST_URL, &url?)?.to_string().trim_end_matches('/').to_owned();
        let Ok(mut authorization) = HeaderValue::try_from(format!("Bearer {}", token?)) else {
            self.wrong(&UPSTASH_REDIS_REST_TOKEN, "is not valid in a header: copy it again, without line breaks");
            return None;
        };
        authorization.set_sensitive(true);
        Some(RedisConfig { credentials: Credentials { url, authorization }, timeout, keys, has_read_regions })
    }

    fn page(&mut self) -> PageConfig {
        PageConfig {
            ttl: self.seconds(&PAGE_TTL),
            stale: self.seconds(&PAGE_STALE),
            rank_limit: self.number(&PAGE_RANK_LIMIT),
            max_bytes: self.count(&PAGE_MAX_BYTES),
            total_bytes: self.number(&PAGE_TOTAL_BYTES),
            wait: self.milliseconds(&PAGE_WAIT_MS),
            memory: self.seconds(&PAGE_MEMORY),
            location: self.milliseconds(&PAGE_LOCATION_MS),
            headers: HeaderRules {
                forward: self.forwarded_headers(),
                varied: self.rules(&HEADERS_VARIED, selecting_headers),
                normalized: self.rules(&HEADERS_NORMALIZED, NormalizedHeader::parse_all),
            },
            urls: self.url_rules(),
            cookies: self.cookie_rules(),
            holes: self.rules(&HOLES, HoleRules::parse),
            holes_wait: self.milliseconds(&HOLES_WAIT_MS),
        }
    }

    fn origin(&mut self) -> OriginConfig {
        OriginConfig {
            url: self.origin_url(),
            key: self.secret_header(&ORIGIN_KEY),
            timeout: self.seconds(&ORIGIN_TIMEOUT),
            cart_routes: self.cart_routes(),
            login_routes: self.login_routes(),
            site: self.url(&DEMO_URL).map(|url| url.as_str().trim_end_matches('/').to_owned()),
            mail: self.mail(),
        }
    }

    fn layout(&mut self) -> Keys {
        let shards = NonZeroU16::new(self.count(&SHARDS)).unwrap_or(NonZeroU16::MIN);
        let Some(text) = self.text(&SHARDS_KNOWN) else { return Keys::new(shards) };
        let number =
            |text: &str| text.trim().parse().ok().filter(|number: &NonZeroU16| number.get() <= Keys::MAX_SHARDS);
        let known = text.split(',').map(number).collect::<Option<Vec<_>>>().filter(|known| known.contains(&shards));
        let Some(known) = known else {
            self.refuse(&SHARDS_KNOWN, &text);
            return Keys::new(shards);
        };
        Keys::with_known(shards, &known)
    }

    fn session_keys(&mut self) -> Vec<Secret> {
        let text = self.text(&SESSION_KEYS).unwrap_or_default();
        let keys: Vec<_> = text.split(',').map(str::trim).collect();
        if keys.iter().any(|key| key.len() < least(&SESSION_KEYS)) {
            let remedy = "`openssl rand -base64 32` generates a key";
            let problem = format!("is not set, or a key is too short: set {}; {remedy}", SESSION_KEYS.allowed);
            self.wrong(&SESSION_KEYS, problem);
        }
        keys.into_iter().map(Secret::new).collect()
    }

    fn origin_url(&mut self) -> Option<Url> {
        if !cfg!(feature = "demo") && self.text(&ORIGIN_URL).is_none() {
            let remedy = "set it, or build the Worker with the feature `demo`";
            self.wrong(&ORIGIN_URL, format!("is not set, and this Worker has no demo shop: {remedy}"));
        }
        let url = self.url(&ORIGIN_URL)?;
        // Requests to the origin have the visitor's query, and no credentials of an address.
        let is_plain = url.username().is_empty() && url.password().is_none() && url[Position::AfterPath..].is_empty();
        if !is_plain {
            self.wrong(
                &ORIGIN_URL,
                "has a user, a password, a query or a fragment: set scheme, host, port and path only",
            );
        }
        Some(url)
    }

    fn preset(&mut self) -> Option<Preset> {
        let name = self.explicit(&PRESET)?;
        let preset = Preset::find(&name);
        if preset.is_none() {
            self.wrong(&PRESET, format!("is {name:?}: set one of {}", Preset::names()));
        }
        preset
    }

    fn url_rules(&mut self) -> UrlRules {
        let query = QueryRules {
            ignored: self.rules(&QUERY_IGNORED, Patterns::parse),
            kept: self.rules(&QUERY_KEPT, QueryRules::parse_kept),
        };
        let items = self.item_routes(&ITEM_ROUTES, "{item}");
        let personal_paths = self.rules(&PATHS_PERSONAL, PathPatterns::parse);
        let shared_paths: PathPatterns = self.rules(&PATHS_SHARED, PathPatterns::parse);
        if shared_paths.names().next().is_some() && self.text(&PAGE_FORWARD_HEADERS).as_deref() == Some("*") {
            self.wrong(
                &PATHS_SHARED,
                "is set, and PAGE_FORWARD_HEADERS is *: a visitor's own header could change a page that the storefront forbids to share. Name the headers",
            );
        }
        let personal_writes = self.rules(&WRITES_PERSONAL, PathPatterns::parse);
        let choices = self.rules(&CHOICES, Choices::parse);
        UrlRules { items, query, personal_paths, shared_paths, personal_writes, choices }
    }

    fn cookie_rules(&mut self) -> CookieRules {
        let csrf = self.text(&CSRF_COOKIE);
        if let Some(name) = csrf.as_deref().filter(|name| !is_cookie_name(name)) {
            self.refuse(&CSRF_COOKIE, name);
        }
        CookieRules {
            ignored: self.rules(&COOKIES_IGNORED, Patterns::parse),
            personal: self.rules(&COOKIES_PERSONAL, Patterns::parse),
            varied: self.rules(&COOKIES_VARIED, CookieRules::parse_varied),
            dropped: self.rules(&COOKIES_DROPPED, CookieRules::parse_dropped),
            holes: self.rules(&COOKIES_HOLES, Patterns::parse),
            csrf,
        }
    }

    /// A list of rules: the variable's, else the preset's, else the default. A list that begins with `+` adds to the
    /// one that it would replace.
    fn rules<T: Default>(&mut self, variable: &Variable, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let preset = self.preset.and_then(|preset| preset.get(variable.name)).map(str::to_owned);
        let default = Preset::DEFAULT.get(variable.name).map(str::to_owned);
        let layers = [default, preset, self.explicit(variable)].into_iter().flatten();
        // A selector may contain commas.
        let separator = if variable.name == HOLES.name { ';' } else { ',' };
        let text = layers.fold(String::new(), |inherited, list| match list.strip_prefix('+') {
            Some(more) => format!("{inherited}{separator} {more}"),
            None => list,
        });
        self.parsed(variable, parse(&text))
    }

    fn forwarded_headers(&mut self) -> Forward {
        let text = self.text(&PAGE_FORWARD_HEADERS).unwrap_or_default();
        if text == "*" {
            return Forward::All;
        }
        Forward::Only(self.parsed(&PAGE_FORWARD_HEADERS, selecting_headers(&text)))
    }

    fn rows(&mut self, origin: &OriginConfig) -> Option<RowsConfig> {
        let url = self.url(&ROWS_URL).map(|url| {
            let is_at_origin = origin.url.as_ref().is_some_and(|origin| origin.origin() == url.origin());
            RowsConfig::Url { key: origin.key.clone().filter(|_| is_at_origin), url }
        });
        let Some(table) = self.text(&ROWS_TABLE) else { return url };
        let is_name = table.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !table.starts_with(|first: char| first.is_ascii_digit());
        if url.is_some() {
            self.wrong(&ROWS_URL, "is set, and so is ROWS_TABLE: set only one of them");
        } else if !is_name {
            self.refuse(&ROWS_TABLE, &table);
        }
        Some(RowsConfig::Table(table))
    }

    fn mail(&mut self) -> Option<MailTarget> {
        let text = self.text(&DEMO_MAIL)?;
        if text != "log" {
            self.refuse(&DEMO_MAIL, &text);
        } else if self.text(&DEMO_URL).is_none() {
            self.wrong(&DEMO_MAIL, "needs DEMO_URL: the links in mails name it");
        }
        Some(MailTarget::Log)
    }

    fn item_routes(&mut self, variable: &Variable, placeholder: &str) -> ItemRoutes {
        let text = self.text(variable).unwrap_or_default();
        self.parsed(variable, ItemRoutes::parse_with(placeholder, &text))
    }

    fn cart_routes(&mut self) -> PathPatterns {
        let routes = self.routes(&CART_ROUTES, DEMO_CART_ROUTES);
        self.parsed(&CART_ROUTES, PathPatterns::parse(&routes))
    }

    /// `LOGIN_ROUTES` and all paths below them.
    fn login_routes(&mut self) -> PathPatterns {
        let routes = self.routes(&LOGIN_ROUTES, DEMO_LOGIN_ROUTES);
        let routes = entries(&routes, ',').map(|route| route.trim_end_matches('/'));
        let routes: Vec<_> = routes.map(|route| format!("{route}, {route}/*")).collect();
        self.parsed(&LOGIN_ROUTES, PathPatterns::parse(&routes.join(",")))
    }

    /// The value of a variable, with `demo` if edgefront serves the demo shop.
    fn routes(&self, variable: &Variable, demo: &str) -> String {
        let text = self.text(variable).unwrap_or_default();
        if self.text(&ORIGIN_URL).is_none() { format!("{text}, {demo}") } else { text }
    }

    /// The value that was parsed for a variable. If it is wrong, the default.
    fn parsed<T: Default>(&mut self, variable: &Variable, value: Result<T, String>) -> T {
        value.unwrap_or_else(|problem| {
            self.wrong(variable, problem);
            T::default()
        })
    }

    fn url(&mut self, variable: &Variable) -> Option<Url> {
        let text = self.text(variable)?;
        self.parse_url(variable, &text)
    }

    fn parse_url(&mut self, variable: &Variable, text: &str) -> Option<Url> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if url.is_none() {
            // Without the value, because an address may be a secret.
            self.wrong(variable, "is not an address: set one that begins with http:// or https://");
        }
        url
    }

    fn secret_header(&mut self, variable: &Variable) -> Option<HeaderValue> {
        let Ok(mut value) = HeaderValue::try_from(self.secret(variable)?) else {
            self.wrong(variable, "is not valid in a header: set visible ASCII characters");
            return None;
        };
        value.set_sensitive(true);
        Some(value)
    }

    fn secret(&mut self, variable: &Variable) -> Option<String> {
        let secret = self.text(variable)?;
        if secret.len() < least(variable) {
            self.wrong(variable, format!("has {} characters: set {}", secret.len(), variable.allowed));
        }
        Some(secret)
    }

    fn seconds(&mut self, variable: &Variable) -> Duration {
        // At most a hundred years, so that sums of times cannot overflow.
        Duration::from_secs(self.number(variable).min(36_500 * 86_400))
    }

    fn milliseconds(&mut self, variable: &Variable) -> Duration {
        Duration::from_millis(self.number(variable))
    }

    /// A number whose row limits it to `T`.
    fn count<T: TryFrom<u64> + Default>(&mut self, variable: &Variable) -> T {
        T::try_from(self.number(variable)).unwrap_or_default()
    }

    fn number(&mut self, variable: &Variable) -> u64 {
        let text = self.text(variable).unwrap_or_default();
        let number = text.parse().ok().filter(|number| (variable.min..=variable.max).contains(number));
        number.unwrap_or_else(|| {
            self.refuse(variable, &text);
            0
        })
    }

    /// The value of a variable without a default.
    fn required(&mut self, variable: &Variable) -> Option<String> {
        let text = self.text(variable);
        if text.is_none() {
            self.wrong(
                variable,
                "is not set: copy it from Upstash's console into .dev.vars, or run `wrangler secret put`",
            );
        }
        text
    }

    /// The value, else the preset's, else the default. None if there is none of them.
    fn text(&self, variable: &Variable) -> Option<String> {
        let preset = || self.preset.and_then(|preset| preset.get(variable.name));
        let inherited = || preset().or(Some(variable.default).filter(|default| !default.is_empty())).map(str::to_owned);
        self.explicit(variable).or_else(inherited)
    }

    /// The value of the variable itself.
    fn explicit(&self, variable: &Variable) -> Option<String> {
        (self.get)(variable.name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn refuse(&mut self, variable: &Variable, value: &str) {
        self.wrong(variable, format!("is {value:?}: set {}", variable.allowed));
    }

    fn wrong(&mut self, variable: &Variable, problem: impl Into<String>) {
        self.errors.push(ConfigError { variable: variable.name, problem: problem.into() });
    }
}

/// The least length of a secret, in characters.
fn least(secret: &Variable) -> usize {
    usize::try_from(secret.min).unwrap_or(usize::MAX)
}
