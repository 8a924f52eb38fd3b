//! What the cache would do for a URL, and why: `GET /cache?url=`. It takes no lease and counts no view.

use serde::Serialize;

use super::{
    key::Page,
    lookup::{State, look},
    vary::Selecting,
};
use crate::{
    config::PageConfig,
    ports::{error::Error, time::Timestamp},
    upstash::Redis,
};

/// The answer, as its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Whether a GET of the URL, without headers that forbid it, is stored or would be whatever the origin says of freshness.
    /// False: it is, where the origin states that it is fresh.
    pub cacheable: bool,
    /// Why, or why not: `fresh`, `stale`, `absent`, `unstorable` (it was asked for a moment ago), or the `detail` of `Cache-Status`.
    pub why: &'static str,
    #[serde(flatten)]
    pub page: Option<Named>,
    #[serde(flatten)]
    pub stored: Option<Stored>,
}

/// A page that could be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    pub item: Option<String>,
    /// The canonical URL.
    pub url: String,
    /// Where it is stored.
    pub key: String,
    /// None if the item was never viewed.
    pub rank: Option<u64>,
    /// The headers of a request that tell its variants apart, separated by commas.
    pub varies_by: String,
}

/// A page that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// Seconds since it was rendered.
    pub age: u64,
    /// Seconds that it stays fresh; below zero when stale.
    pub ttl: i64,
    /// Bytes of the body.
    pub bytes: usize,
    pub tags: Vec<String>,
}

/// Explains an absolute URL, for a request without headers that tell its variants apart.
///
/// # Errors
/// [`Error::Redis`].
pub async fn explain(redis: &Redis, url: &str, now: Timestamp, config: &PageConfig) -> Result<Explanation, Error> {
    let page = match Page::of_url(url, &config.item_routes) {
        Ok(page) => page,
        Err(pass) => return Ok(Explanation { cacheable: false, why: pass.detail(), page: None, stored: None }),
    };
    let selecting = Selecting::default();
    let look = look(redis, &page, &selecting, None, now).await?;
    let stored = look.entry.map(|entry| Stored {
        age: entry.age(now),
        ttl: entry.ttl(now),
        bytes: entry.body.len(),
        tags: entry.tags.iter().map(ToString::to_string).collect(),
    });
    let popularity = page.by_popularity().and_then(|()| config.popularity(look.rank));
    let (cacheable, why) = match (&stored, look.state, popularity) {
        (Some(stored), _, _) => (true, if stored.ttl > 0 { "fresh" } else { "stale" }),
        (None, State::Unstorable, _) => (false, "unstorable"),
        (None, State::Known, _) | (None, State::Unknown, Ok(())) => (true, "absent"),
        (None, State::Unknown, Err(why)) => (false, why),
    };
    let named = Named {
        item: page.item().map(ToString::to_string),
        url: page.url().to_owned(),
        key: redis.keys().page(page.hash()),
        rank: look.rank,
        varies_by: look.vary.to_text(),
    };
    Ok(Explanation { cacheable, why, page: Some(named), stored })
}
