//! Explains the cache's decision for a URL: `GET /cache?url=`. Takes no lease and counts no view.

use serde::Serialize;

use super::{
    admission::popularity,
    lookup::{PageState, look_up},
    memory::PageMemory,
    selecting::SelectingHeaders,
};
use crate::{
    config::PageConfig,
    ports::{error::Error, time::Timestamp},
    schema::redis::Redis,
};

/// The explanation, in the form of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// True if a plain GET of the URL is stored, or would be stored even if the origin states no freshness.
    pub cacheable: bool,
    /// The reason: `fresh`, `stale`, `absent`, or the `detail` of `Cache-Status`.
    pub why: &'static str,
    /// The part of the last response that prevented the store, such as `set-cookie: csrftoken`; empty without one.
    pub cause: String,
    #[serde(flatten)]
    pub page: Option<ExplainedPage>,
    #[serde(flatten)]
    pub stored: Option<ExplainedEntry>,
    pub rules: ExplainedRules,
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
    pub csrf_cookie: Option<String>,
    pub paths_personal: Vec<String>,
    pub query_ignored: Vec<String>,
    pub query_kept: Vec<String>,
}

impl ExplainedRules {
    fn of(config: &PageConfig, path: &str) -> Self {
        let (cookies, urls) = (&config.cookies, &config.urls);
        let dropped = cookies.dropped.iter().filter(|rule| rule.path.contains(path));
        Self {
            cookies_ignored: cookies.ignored.names().collect(),
            cookies_personal: cookies.personal.names().collect(),
            cookies_varied: cookies.varied.iter().map(|cookie| cookie.name.clone()).collect(),
            cookies_dropped: dropped.flat_map(|rule| rule.name.names()).collect(),
            csrf_cookie: cookies.csrf.clone(),
            paths_personal: urls.personal_paths.names().collect(),
            query_ignored: urls.query.ignored.names().collect(),
            query_kept: urls.query.kept.names().collect(),
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

/// Explains an absolute URL for a request without selecting headers. `memory` has the items that the origin named.
///
/// # Errors
/// [`Error::Redis`].
pub async fn explain(
    redis: &Redis,
    memory: &PageMemory,
    url: &str,
    now: Timestamp,
    config: &PageConfig,
) -> Result<Explanation, Error> {
    let page = match memory.key(url.to_owned(), &config.urls) {
        Ok(page) => page,
        Err(reason) => {
            let (why, rules) = (reason.as_str(), ExplainedRules::of(config, ""));
            return Ok(Explanation { cacheable: false, why, cause: String::new(), page: None, stored: None, rules });
        }
    };
    let selecting = SelectingHeaders::default();
    let look = look_up(redis, &page, &selecting, None, now).await?;
    let named = look.entry.as_ref().and_then(|entry| entry.item.as_ref());
    let page = if named.is_some() { page.naming(named) } else { page };
    let stored = look.entry.map(|entry| ExplainedEntry {
        age: entry.age(now),
        ttl: entry.ttl(now),
        bytes: entry.body.len(),
        tags: entry.tags.iter().map(ToString::to_string).collect(),
    });
    let popularity = page.by_popularity().and_then(|()| popularity(config, look.rank));
    let (cacheable, why) = match (&stored, look.state, popularity) {
        (Some(stored), _, _) => (true, if stored.ttl > 0 { "fresh" } else { "stale" }),
        (None, PageState::Shared, _) | (None, PageState::Unknown, Ok(())) => (true, "absent"),
        (None, PageState::Unstorable(reason), _) | (None, PageState::Unknown, Err(reason)) => (false, reason.as_str()),
    };
    let named = ExplainedPage {
        item: page.item().map(ToString::to_string),
        url: page.url().to_owned(),
        key: redis.keys().page(page.hash()),
        rank: look.rank,
        varies_by: look.vary.to_text(),
    };
    let rules = ExplainedRules::of(config, page.path());
    Ok(Explanation { cacheable, why, cause: look.cause, page: Some(named), stored, rules })
}
