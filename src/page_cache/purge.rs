//! Purges. A mark with Redis' time voids every page that was rendered before it, in all locations and including renders
//! under way. A purge writes one mark per name, regardless of the number of pages.

use super::{key::PageKey, policy::freshness::LONGEST};
use crate::{
    ports::error::Error,
    schema::{
        ids::{ItemId, Tag},
        redis::Redis,
        scripts::PURGE,
    },
};
use upstash_rest::Command;

/// The pages to purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Every page.
    All,
    /// Every page of the item.
    Item(ItemId),
    /// One page.
    Url(PageKey),
    /// Every page with this tag (`Edge-Tags`).
    Tag(Tag),
}

impl Purge {
    fn mark(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Item(item) => format!("item:{item}"),
            Self::Url(key) => format!("url:{}", key.hash()),
            Self::Tag(tag) => format!("tag:{tag}"),
        }
    }
}

/// The effect of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMode {
    /// The pages are deleted.
    Hard,
    /// The pages become stale: they are served while they are revalidated, or if the origin fails.
    Soft,
}

/// Purges pages. The next lookup sees the purge.
///
/// A script, because the marks carry Redis' time. Idempotent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn purge(redis: &Redis, purges: &[Purge], mode: PurgeMode) -> Result<(), Error> {
    // Twice the longest life of a page: an expired mark would revive old pages.
    let keep = LONGEST * 2;
    let soft = if mode == PurgeMode::Soft { "~" } else { "" };
    let marks = purges.iter().map(|purge| format!("{soft}{}", purge.mark()));
    let call =
        Command::script(&PURGE, [redis.keys().purged(), redis.keys().latest_purge()]).num(keep.as_micros()).args(marks);
    Ok(redis.run(call.repeatable()).await?)
}
