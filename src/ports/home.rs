//! The home tier, as the edge tier reaches it.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::fetch::{FetchError, Request, Response};

/// Sends requests to the home tier.
pub trait Home {
    /// Sends `request` and resolves with the response when its head has arrived.
    ///
    /// # Errors
    /// [`FetchError::Timeout`] after `deadline`, [`FetchError::Unreachable`] if there can be no response.
    fn send(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>>;
}
