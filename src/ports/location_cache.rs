//! The cache of a location, which all of its isolates share. It may lose an entry at any time.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

/// The cache did not answer. The caller does without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the location's cache did not answer")]
pub struct NoAnswer;

/// Stores bytes by name. `stamp` identifies the content of an entry.
pub trait LocationCache {
    /// The entry `name`. None if there is none, or if its stamp is `known`.
    ///
    /// # Errors
    /// [`NoAnswer`], at the latest after `deadline`.
    fn get<'a>(
        &'a self,
        name: &'a str,
        known: &'a str,
        deadline: Duration,
    ) -> LocalBoxFuture<'a, Result<Option<Bytes>, NoAnswer>>;

    /// Stores `parts`, one after the other, as the entry `name` for `lifetime`.
    ///
    /// # Errors
    /// [`NoAnswer`].
    fn put<'a>(
        &'a self,
        name: &'a str,
        stamp: &'a str,
        parts: [&'a [u8]; 2],
        lifetime: Duration,
    ) -> LocalBoxFuture<'a, Result<(), NoAnswer>>;
}
