//! The one way out of the Worker: a complete HTTP request in, an HTTP response out, within a deadline.
//!
//! Whatever speaks HTTP (Redis over REST, the origin, rows by URL) goes through [`Fetch`], so that the whole of edgefront
//! runs natively against real servers, and in a Worker over the platform's `fetch`.

use std::{any::Any, fmt, io, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, future::LocalBoxFuture};

/// A request as it comes in or goes out. The URI is absolute.
pub type Request = http::Request<Body>;
/// A response as it comes in or goes out.
pub type Response = http::Response<Body>;

/// Sends HTTP requests.
pub trait Fetch {
    /// Sends `request` and resolves with the response's head; the body may still be on its way.
    ///
    /// Redirects are passed on, not followed, and a body that is compressed stays so.
    ///
    /// # Errors
    /// [`FetchError::Timeout`] if no complete response head has arrived `deadline` after the call, and
    /// [`FetchError::Unreachable`] if there can be none.
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>>;
}

/// Why there is no response. Neither says whether the server has executed the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("no answer in time")]
    Timeout,
    #[error("no connection, or it broke")]
    Unreachable,
}

/// A message body: known bytes, or a stream that is passed on without being held.
#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    Bytes(Bytes),
    Stream(Box<dyn ByteStream>),
}

/// A stream of body chunks. `as_any` lets the edge recognise a stream of its own and hand it back to the platform
/// untouched: 100 MB through a Worker then cost no copy.
pub trait ByteStream: Stream<Item = io::Result<Bytes>> + Unpin {
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Why a body could not be read whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body broke off")]
    Truncated,
}

/// What [`Body::collect`] found.
pub enum Collected {
    /// The whole body.
    Whole(Bytes),
    /// More than the limit: what was read so far, and the rest behind it, still as one body.
    TooLarge(Body),
}

impl Body {
    /// Reads the body if it has at most `limit` bytes. A longer one is given back unharmed.
    ///
    /// # Errors
    /// [`BodyError::Truncated`] if the stream fails before its end.
    pub async fn collect(self, limit: usize) -> Result<Collected, BodyError> {
        let mut stream = match self {
            Self::Empty => return Ok(Collected::Whole(Bytes::new())),
            Self::Bytes(bytes) if bytes.len() > limit => return Ok(Collected::TooLarge(Self::Bytes(bytes))),
            Self::Bytes(bytes) => return Ok(Collected::Whole(bytes)),
            Self::Stream(stream) => stream,
        };
        let mut read = BytesMut::new();
        while let Some(chunk) = stream.next().await {
            read.extend_from_slice(&chunk.map_err(|_| BodyError::Truncated)?);
            if read.len() > limit {
                let rest = Prefixed { read: Some(read.freeze()), rest: stream };
                return Ok(Collected::TooLarge(Self::Stream(Box::new(rest))));
            }
        }
        Ok(Collected::Whole(read.freeze()))
    }

    /// Length in bytes if it is known without reading.
    #[must_use]
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::Empty => Some(0),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::Stream(_) => None,
        }
    }

    /// Whether the body is known to have no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// What was read of a stream, and then the rest of it.
struct Prefixed {
    read: Option<Bytes>,
    rest: Box<dyn ByteStream>,
}

impl Stream for Prefixed {
    type Item = io::Result<Bytes>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        match self.read.take() {
            Some(read) => std::task::Poll::Ready(Some(Ok(read))),
            None => self.rest.poll_next_unpin(context),
        }
    }
}

impl ByteStream for Prefixed {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            Some(length) => write!(f, "Body({length} bytes)"),
            None => f.write_str("Body(stream)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Bytes(bytes) }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}
