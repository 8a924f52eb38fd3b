//! The way to the database: HTTP, a clock and a timer. The features `reqwest` and `web` bring one each.

#[cfg(all(feature = "reqwest", not(target_arch = "wasm32")))]
mod reqwest;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod web;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{LocalBoxFuture, abortable},
};

#[cfg(all(feature = "reqwest", not(target_arch = "wasm32")))]
pub use self::reqwest::ReqwestTransport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use self::web::WebTransport;
use crate::error::TransportError;

/// A sleep that its [`Wake`] ends early.
pub type Alarm = LocalBoxFuture<'static, ()>;
/// Ends an [`Alarm`] early.
pub type Wake = Box<dyn FnOnce()>;

/// The limits of an exchange, and what its callers expect.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeTerms {
    /// The time in which the whole response must arrive.
    pub deadline: Duration,
    /// Bytes that the response's body may have.
    pub limit: usize,
    /// Several callers wait for the response. If the platform can cancel one of them, it must not cancel the exchange.
    pub is_shared: bool,
    /// The body is probably short: no command declares a large reply.
    pub is_short: bool,
}

/// Sends HTTP requests and measures time. Implement it to send through another HTTP client, to count requests, or to
/// test.
pub trait Transport {
    /// Sends a request and resolves with the whole response. Redirects are not followed. Of the response's headers,
    /// only `upstash-sync-token` must be there.
    ///
    /// # Errors
    /// [`TransportError::Timeout`] if the whole response has not arrived by the deadline,
    /// [`TransportError::Unreachable`] if it never will or is too large, and [`TransportError::NotSent`] if the
    /// transport refuses to send the request.
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;

    /// The time since a fixed moment, such as the Unix epoch or the start of the program.
    fn now(&self) -> Duration;

    /// Resolves after `duration`.
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()>;

    /// Yields to the event loop: resolves when the work that had arrived before has begun.
    ///
    /// Override it if the platform may cancel the request that waits: the promise should resolve nevertheless, because
    /// others may have joined the batch that follows.
    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        self.sleep(Duration::ZERO)
    }

    /// Returns a sleep and the function that ends it early. Another caller may call that function.
    ///
    /// Override it on a platform where each request has its own I/O context: the sleeper must wake in its own.
    fn alarm(&self, duration: Duration) -> (Alarm, Wake) {
        let (alarm, handle) = abortable(self.sleep(duration));
        (Box::pin(alarm.map(drop)), Box::new(move || handle.abort()))
    }
}
