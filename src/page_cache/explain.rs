//! What the cache would do for a URL, and why: `GET /cache?url=`. It takes no lease and counts no view.

use serde::Serialize;

use super::{
    admission::Pass,
    key::Page,
    lookup::{Look, Lookup},
};
use crate::{config::PageConfig, error::Error, time::Timestamp, upstash::Redis};

/// The answer, as its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Whether a GET of the URL, without headers that forbid it, may be stored.
    pub cacheable: bool,
    /// Why, or why not: `fresh`, `stale`, `absent`, or the `detail` of `Cache-Status`.
    pub why: &'static str,
    #[serde(flatten)]
    pub page: Option<Named>,
    #[serde(flatten)]
    pub stored: Option<Stored>,
}

/// A page that could be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    pub item: String,
    /// The canonical URL.
    pub url: String,
    /// Where it is stored.
    pub key: String,
    /// None if the item was never viewed.
    pub rank: Option<u64>,
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

/// Explains an absolute URL.
///
/// # Errors
/// [`Error::Redis`].
pub async fn explain(redis: &Redis, url: &str, now: Timestamp, config: &PageConfig) -> Result<Explanation, Error> {
    let page = match Page::of_url(url, &config.item_routes) {
        Ok(page) => page,
        Err(pass) => return Ok(Explanation { cacheable: false, why: pass.detail(), page: None, stored: None }),
    };
    let lookup = Lookup::only(&page, now, config);
    let reply = redis.run(lookup.command()).await?;
    let look = lookup.read(reply)?;
    let (cacheable, why, rank, stored) = match look {
        Look::Unpopular { rank } => (false, Pass::Unpopular.detail(), rank, None),
        Look::Absent { rank, .. } => (true, "absent", Some(rank), None),
        Look::Stored { rank, entry, .. } => {
            let stored = Stored {
                age: entry.age(now),
                ttl: entry.ttl(now),
                bytes: entry.body.len(),
                tags: entry.tags.iter().map(ToString::to_string).collect(),
            };
            (true, if entry.is_fresh(now) { "fresh" } else { "stale" }, Some(rank), Some(stored))
        }
    };
    let key = crate::keys::page(page.hash());
    let named = Named { item: page.item().to_string(), url: page.url().to_owned(), key, rank };
    Ok(Explanation { cacheable, why, page: Some(named), stored })
}
