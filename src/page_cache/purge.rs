//! Purges: a mark with Redis' clock voids every page that was rendered before it, in all locations at once and whatever is
//! being rendered now. One mark per name, however many pages carry it.

use super::{key::Page, storable::LONGEST};
use crate::schema::scripts::PURGE;
use crate::{
    ports::error::Error,
    schema::ids::{ItemId, Tag},
    upstash::{Command, Redis},
};

/// What is no longer to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Every page.
    All,
    /// Every page of the item.
    Item(ItemId),
    /// One page.
    Url(Page),
    /// Every page that the origin gave this tag.
    Tag(Tag),
}

impl Purge {
    fn mark(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Item(item) => format!("item:{item}"),
            Self::Url(page) => format!("url:{}", page.hash()),
            Self::Tag(tag) => format!("tag:{tag}"),
        }
    }
}

/// What a purge does to the pages that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// They are void.
    Hard,
    /// They have become stale: the origin is asked, and they are served meanwhile, or where it fails, as stale pages are.
    Soft,
}

/// Purges; it holds from the next read on.
///
/// A script, because the marks carry Redis' own clock. Doing it twice does it once.
///
/// # Errors
/// [`Error::Redis`].
pub async fn purge(redis: &Redis, purges: &[Purge], extent: Extent) -> Result<(), Error> {
    // Twice the longest life of a page: an hour more or less does not matter here, a forgotten mark would.
    let keep = LONGEST * 2;
    let soft = if extent == Extent::Soft { "~" } else { "" };
    let marks = purges.iter().map(|purge| format!("{soft}{}", purge.mark()));
    let call = Command::script(&PURGE, [redis.keys().purged()]).num(keep.as_micros()).args(marks);
    Ok(redis.run(call.repeatable()).await?)
}
