//! HTTP by `reqwest`, time by `tokio`.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use reqwest::redirect;
use tokio::time::{Instant, sleep, timeout};

use super::{ExchangeTerms, Transport};
use crate::error::TransportError;

/// A transport over real sockets, for native code. It needs a `tokio` runtime with time and I/O.
#[derive(Debug, Clone)]
pub struct ReqwestTransport {
    client: reqwest::Client,
    start: Instant,
}

impl ReqwestTransport {
    /// A transport with an HTTP client of its own, which follows no redirects.
    ///
    /// # Errors
    /// [`TransportError::Unreachable`] if the TLS library that the application chose cannot be initialized.
    pub fn new() -> Result<Self, TransportError> {
        let client = reqwest::Client::builder().redirect(redirect::Policy::none()).build();
        Ok(client.map_err(|_| TransportError::Unreachable)?.into())
    }

    async fn send(&self, request: http::Request<Bytes>, limit: usize) -> Result<http::Response<Bytes>, TransportError> {
        let request = reqwest::Request::try_from(request).map_err(|error| failure(&error))?;
        let mut response = self.client.execute(request).await.map_err(|error| failure(&error))?;
        let mut head = http::Response::new(());
        *head.status_mut() = response.status();
        *head.headers_mut() = std::mem::take(response.headers_mut());
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
            if body.len() + chunk.len() > limit {
                return Err(TransportError::Unreachable);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(head.map(|()| body.freeze()))
    }
}

/// A transport with this HTTP client: its proxy, its TLS settings, its connection pool.
impl From<reqwest::Client> for ReqwestTransport {
    fn from(client: reqwest::Client) -> Self {
        Self { client, start: Instant::now() }
    }
}

impl Transport for ReqwestTransport {
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let response = self.send(request, terms.limit);
            timeout(terms.deadline, response).await.unwrap_or(Err(TransportError::Timeout))
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(sleep(duration))
    }
}

fn failure(error: &reqwest::Error) -> TransportError {
    if error.is_timeout() { TransportError::Timeout } else { TransportError::Unreachable }
}
