//! Explains the cache's decision for a URL: `GET /cache?url=`. Takes no lease and counts no view.

use serde::Serialize;

use super::{
    admission::popularity,
    key::PageKey,
    lookup::{PageState, look_up},
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
    /// The reason: `fresh`, `stale`, `absent`, `unstorable` (hit-for-miss), or the `detail` of `Cache-Status`.
    pub why: &'static str,
    #[serde(flatten)]
    pub page: Option<ExplainedPage>,
    #[serde(flatten)]
    pub stored: Option<ExplainedEntry>,
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

/// Explains an absolute URL for a request without selecting headers.
///
/// # Errors
/// [`Error::Redis`].
pub async fn explain(redis: &Redis, url: &str, now: Timestamp, config: &PageConfig) -> Result<Explanation, Error> {
    let page = match PageKey::of_url(url, &config.item_routes) {
        Ok(page) => page,
        Err(reason) => return Ok(Explanation { cacheable: false, why: reason.as_str(), page: None, stored: None }),
    };
    let selecting = SelectingHeaders::default();
    let look = look_up(redis, &page, &selecting, None, now).await?;
    let stored = look.entry.map(|entry| ExplainedEntry {
        age: entry.age(now),
        ttl: entry.ttl(now),
        bytes: entry.body.len(),
        tags: entry.tags.iter().map(ToString::to_string).collect(),
    });
    let popularity = page.by_popularity().and_then(|()| popularity(config, look.rank));
    let (cacheable, why) = match (&stored, look.state, popularity) {
        (Some(stored), _, _) => (true, if stored.ttl > 0 { "fresh" } else { "stale" }),
        (None, PageState::Unstorable, _) => (false, "unstorable"),
        (None, PageState::Shared, _) | (None, PageState::Unknown, Ok(())) => (true, "absent"),
        (None, PageState::Unknown, Err(reason)) => (false, reason.as_str()),
    };
    let named = ExplainedPage {
        item: page.item().map(ToString::to_string),
        url: page.url().to_owned(),
        key: redis.keys().page(page.hash()),
        rank: look.rank,
        varies_by: look.vary.to_text(),
    };
    Ok(Explanation { cacheable, why, page: Some(named), stored })
}
