//! Explains the cache's decision for a URL: `GET /cache?url=`. Takes no lease and counts no view.

use http::StatusCode;
use serde::Serialize;

use super::exchange::{Exchanged, RenderRequest, UnstorableResponse, exchange};
use crate::{
    App,
    config::PageConfig,
    page_cache::{
        admission::popularity_of_page,
        hit_for_miss::{self, Unstorable},
        key::PageKey,
        lookup::{PageState, look_up},
        policy::Reason,
        selecting::SelectingHeaders,
    },
    ports::{error::Error, time::Timestamp},
};

/// The explanation, in the form of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// True if a plain GET of the URL is stored, or would be stored now.
    pub cacheable: bool,
    /// The reason: `fresh`, `stale`, `absent`, or the `detail` of `Cache-Status`.
    pub why: &'static str,
    /// The part of the origin's response that prevents the store, such as `set-cookie: csrftoken`, or the variable that
    /// does. Empty without one.
    pub cause: String,
    #[serde(flatten)]
    pub page: Option<ExplainedPage>,
    #[serde(flatten)]
    pub stored: Option<ExplainedEntry>,
    pub rules: ExplainedRules,
}

impl Explanation {
    /// The explanation of a URL that has no shared page, and so neither holes nor dropped cookies.
    #[must_use]
    pub fn not_a_page(reason: Reason, config: &PageConfig) -> Self {
        let (why, rules) = (reason.as_str(), ExplainedRules::of(config, None));
        Self { cacheable: false, why, cause: String::new(), page: None, stored: None, rules }
    }
}

/// The rules that apply to the page: names and patterns as they were configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRules {
    pub cookies_ignored: Vec<String>,
    /// Cookies whose visitors never get a shared page.
    pub cookies_personal: Vec<String>,
    /// Cookies whose values select the page.
    pub cookies_varied: Vec<String>,
    /// Cookies that shared renders of this page do not set.
    pub cookies_dropped: Vec<String>,
    /// Cookies that change only the holes of a page.
    pub cookies_holes: Vec<String>,
    pub csrf_cookie: Option<String>,
    pub headers_varied: Vec<String>,
    /// As `accept-language=en|de`.
    pub headers_normalized: Vec<String>,
    /// The selectors of the holes of this page.
    pub holes: Vec<String>,
    pub paths_personal: Vec<String>,
    pub paths_shared: Vec<String>,
    pub writes_personal: Vec<String>,
    pub choices: Vec<String>,
    pub query_ignored: Vec<String>,
    pub query_kept: Vec<String>,
}

impl ExplainedRules {
    /// `path`: that of the page. None for a URL without one.
    fn of(config: &PageConfig, path: Option<&str>) -> Self {
        let (cookies, urls, headers) = (&config.cookies, &config.urls, &config.headers);
        let dropped = cookies.dropped.iter().filter(|rule| path.is_some_and(|path| rule.path.contains(path)));
        let holes = path.map(|path| config.holes.of_path(path).map(|rule| rule.selector.clone()).collect());
        Self {
            cookies_ignored: cookies.ignored.names().collect(),
            cookies_personal: cookies.personal.names().collect(),
            cookies_varied: cookies.varied.iter().map(|cookie| cookie.name.clone()).collect(),
            cookies_dropped: dropped.flat_map(|rule| rule.name.names()).collect(),
            cookies_holes: cookies.holes.names().collect(),
            csrf_cookie: cookies.csrf.clone(),
            headers_varied: headers.varied.iter().map(|name| name.as_str().to_owned()).collect(),
            headers_normalized: headers.normalized.iter().map(ToString::to_string).collect(),
            holes: holes.unwrap_or_default(),
            paths_personal: urls.personal_paths.names().collect(),
            paths_shared: urls.shared_paths.names().collect(),
            writes_personal: urls.personal_writes.names().collect(),
            choices: urls.choices.names(),
            query_ignored: urls.query.ignored.names().collect(),
            query_kept: urls.query.kept.entries(),
        }
    }
}

/// A page that could be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedPage {
    pub item: Option<String>,
    /// The canonical URL.
    pub url: String,
    /// The key in Redis.
    pub key: String,
    /// None if the item was never viewed.
    pub rank: Option<u64>,
    /// The request headers that select a variant, separated by commas.
    pub varies_by: String,
}

/// A page that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedEntry {
    /// Seconds since the render.
    pub age: u64,
    /// Remaining freshness in seconds, negative if stale.
    pub ttl: i64,
    /// Bytes of the body.
    pub bytes: usize,
    pub tags: Vec<String>,
}

/// Explains an absolute URL for a request without selecting headers. `app.pages` has the items that the origin named.
///
/// If Redis has neither the page nor a hit-for-miss note about its headers, the origin gets the request of a shared render, because only
/// its response shows if the page can be stored. The response is not stored.
///
/// # Errors
/// [`Error::Redis`]. An origin that fails is no error: it is the reason.
pub async fn explain(app: &App, url: &str, now: Timestamp) -> Result<Explanation, Error> {
    let config = &app.config.page;
    let key = match app.pages.keys.of_url(url.to_owned(), &config.urls) {
        Ok(key) => key,
        Err(reason) => return Ok(Explanation::not_a_page(reason, config)),
    };
    let selecting = SelectingHeaders::default();
    let look = look_up(&app.redis, &key, &selecting, None, now).await?;
    let named = look.page.as_ref().and_then(|page| page.item.as_ref());
    let key = if named.is_some() { key.naming(named) } else { key };
    let stored = look.page.map(|page| ExplainedEntry {
        age: page.age(now),
        ttl: page.ttl(now),
        bytes: page.body.len(),
        tags: page.tags.iter().map(ToString::to_string).collect(),
    });
    let varies_by = look.vary.to_text();
    let (cacheable, why, cause) = match (&stored, look.state) {
        _ if let Some(variable) = personal_route(app, &key) => (false, Reason::Personal.as_str(), variable.to_owned()),
        (Some(stored), _) => (true, if stored.ttl > 0 { "fresh" } else { "stale" }, look.cause),
        // A note about popularity says nothing about the status.
        (None, PageState::Unstorable(reason)) if !reason.lacks_popularity() => (false, reason.as_str(), look.cause),
        (None, _) => {
            let popularity = popularity_of_page(config, &key, look.rank);
            let vary = Some(look.vary).filter(|_| look.state == PageState::Shared);
            let request = RenderRequest::in_background(&key, &selecting, popularity, vary);
            match assess(app, &request).await {
                Ok(None) => (true, "absent", String::new()),
                Ok(Some(why)) => (false, why.reason.as_str(), why.cause),
                Err(_) => (false, Reason::OriginDown.as_str(), String::new()),
            }
        }
    };
    let named = ExplainedPage {
        item: key.item().map(ToString::to_string),
        url: key.url().to_owned(),
        key: app.redis.keys().page(key.hash()),
        rank: look.rank,
        varies_by,
    };
    let rules = ExplainedRules::of(config, Some(key.path()));
    Ok(Explanation { cacheable, why, cause, page: Some(named), stored, rules })
}

/// The variable that keeps the page's requests out of the cache, because the origin gets the visitor's cart or
/// reservation with them.
fn personal_route(app: &App, key: &PageKey) -> Option<&'static str> {
    let query = key.url().split_once('?').map(|(_, query)| query);
    if app.config.origin.cart_routes.contains(key.path()) {
        Some("CART_ROUTES")
    } else if app.config.flash.checkout.item(key.path(), query).is_some() {
        Some("FLASH_CHECKOUT")
    } else {
        None
    }
}

/// Asks the origin for the page without storing it. None if its response could be stored, else the reason against it.
///
/// # Errors
/// As [`exchange`].
async fn assess(app: &App, request: &RenderRequest<'_>) -> Result<Option<Box<Unstorable>>, Error> {
    let exchanged = exchange(app, request, request.sent.as_ref()).await?;
    let Exchanged::NotStorable(UnstorableResponse { response, mut why, .. }) = exchanged else { return Ok(None) };
    // Popularity is judged before the status. For the operator, an error page is an error page.
    let status = response.status();
    if status != StatusCode::OK && why.reason.lacks_popularity() {
        why.reason = Reason::Status;
        why.cause = hit_for_miss::cause(why.reason, status, response.headers());
    }
    Ok(Some(why))
}
