//! Outgoing HTTP: a complete request in, a response out, within a deadline.
//!
//! All HTTP (Redis over REST, the origin, rows by URL) goes through [`Fetch`]. So all of edgefront runs natively
//! against real servers, and in a Worker over the platform's `fetch`.

use std::{
    any::Any,
    cell::{OnceCell, RefCell},
    fmt, io,
    pin::Pin,
    rc::Rc,
    str::FromStr,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{
    Stream, StreamExt,
    future::{Either, LocalBoxFuture, select},
};
use http::{HeaderMap, header};

use super::held::{Content, HeldBytes};
use upstash_rest::{ExchangeTerms, TransportError};

/// An incoming or outgoing request. The URI is absolute.
pub type Request = http::Request<Body>;
/// An incoming or outgoing response.
pub type Response = http::Response<Body>;

/// Sends HTTP requests.
pub trait Fetch {
    /// Sends `request` and resolves with the response when its head has arrived; the body may still be arriving.
    ///
    /// Redirects are passed on, not followed, and a compressed body stays compressed.
    ///
    /// # Errors
    /// [`FetchError::Timeout`] if no complete response head has arrived `deadline` after the call, and
    /// [`FetchError::Unreachable`] if there can be none.
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>>;

    /// Sends a POST and resolves with the whole response.
    ///
    /// # Errors
    /// As [`Transport::exchange`](upstash_rest::Transport::exchange).
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;

    /// Moves bytes that will be sent into the platform's memory, if it has one of its own.
    fn hold(&self, bytes: Bytes) -> Content {
        Content::Here(bytes)
    }
}

/// The reason for the lack of a response. The first two do not say whether the server has executed the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("no answer in time")]
    Timeout,
    #[error("no connection, or it broke")]
    Unreachable,
    /// The request was not sent: see [`Budget`](crate::ports::budget::Budget).
    #[error("no requests are left for this run: raise SUBREQUESTS")]
    Spent,
}

impl From<FetchError> for TransportError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Timeout => Self::Timeout,
            FetchError::Unreachable => Self::Unreachable,
            FetchError::Spent => Self::NotSent("no requests are left for this run: raise SUBREQUESTS"),
        }
    }
}

/// `Content-Length` (RFC 9110 §8.6); None without a number.
pub fn content_length<N: FromStr>(headers: &HeaderMap) -> Option<N> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns whether a body has the length that its headers state, if they state one.
#[must_use]
pub fn is_whole(length: Option<usize>, body: &[u8]) -> bool {
    length.is_none_or(|length| length == body.len())
}

/// A message body: bytes, or a stream that is passed on without being collected.
#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    Bytes(Bytes),
    Held(Rc<dyn HeldBytes>),
    /// Bytes that are sent often; their headers are added to the response's.
    Prepared(Rc<PreparedBody>),
    Stream(Box<dyn ByteStream>),
}

/// Bytes that are sent often, with their headers. The platform's form of them is made once.
pub struct PreparedBody {
    pub content: Content,
    pub headers: HeaderMap,
    made: OnceCell<Box<dyn Any>>,
}

impl PreparedBody {
    #[must_use]
    pub const fn new(content: Content, headers: HeaderMap) -> Self {
        Self { content, headers, made: OnceCell::new() }
    }

    /// The platform's form of the body; `make` creates it on first use.
    pub fn made(&self, make: impl FnOnce() -> Box<dyn Any>) -> &dyn Any {
        self.made.get_or_init(make).as_ref()
    }
}

/// A stream of body chunks. With `as_any`, `edge` recognises its own streams and returns them to the platform unread.
/// So 100 MB pass through a Worker without a copy.
pub trait ByteStream: Stream<Item = io::Result<Bytes>> + Unpin {
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The body's stream failed before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body broke off")]
pub struct Truncated;

/// Resolves when the reader of a body stops waiting for it. One type for all readers: the Worker is smaller.
pub type Patience<'a> = Pin<&'a mut dyn Future<Output = ()>>;

/// The result of [`Body::collect_within`]. A body that is not whole is still complete: the bytes read so far, then the
/// rest of the stream.
pub enum Collected {
    /// The whole body.
    Whole(Bytes),
    /// The body exceeds the limit.
    TooLarge(Body),
    /// The time is over.
    Slow(Body),
}

impl Body {
    /// Reads the body if it has at most `limit` bytes, however long that takes.
    ///
    /// # Errors
    /// [`Truncated`].
    pub async fn collect(self, limit: usize) -> Result<Collected, Truncated> {
        self.collect_within(limit, std::pin::pin!(std::future::pending())).await
    }

    /// As [`Body::collect`], until `patience` resolves.
    ///
    /// # Errors
    /// [`Truncated`].
    pub async fn collect_within(self, limit: usize, mut patience: Patience<'_>) -> Result<Collected, Truncated> {
        let whole = |bytes| Ok(Collected::Whole(bytes));
        let too_large = |body| Ok(Collected::TooLarge(body));
        let mut stream = match self {
            Self::Empty => return whole(Bytes::new()),
            Self::Bytes(bytes) if bytes.len() > limit => return too_large(Self::Bytes(bytes)),
            Self::Bytes(bytes) => return whole(bytes),
            Self::Held(held) if held.size() > limit => return too_large(Self::Held(held)),
            Self::Held(held) => return whole(held.read()),
            Self::Prepared(kept) if kept.content.len() > limit => return too_large(Self::Prepared(kept)),
            Self::Prepared(kept) => return whole(kept.content.read()),
            Self::Stream(stream) => stream,
        };
        let mut read = BytesMut::new();
        loop {
            let chunk = match select(stream.next(), patience.as_mut()).await {
                Either::Left((None, _)) => return whole(trimmed(read)),
                Either::Left((Some(chunk), _)) => chunk.map_err(|_| Truncated)?,
                Either::Right(_) => return Ok(Collected::Slow(Self::resumed(read, stream))),
            };
            if read.is_empty() {
                // Nearly all pages arrive in one chunk, which is not copied.
                read = chunk.into();
            } else {
                read.extend_from_slice(&chunk);
            }
            if read.len() > limit {
                return too_large(Self::resumed(read, stream));
            }
        }
    }

    fn resumed(read: BytesMut, rest: Box<dyn ByteStream>) -> Self {
        let read = Some(read.freeze()).filter(|read| !read.is_empty());
        Self::Stream(Box::new(Prefixed { read, rest }))
    }

    /// The same body, and a copy of it. The copy resolves when the whole body has passed, or when `admit` refuses its length so
    /// far.
    #[must_use]
    pub fn copied(self, admit: impl FnMut(usize) -> Result<(), NotCopied> + 'static) -> (Self, BodyCopy) {
        let whole = match &self {
            Self::Stream(_) | Self::Empty => Bytes::new(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Held(held) => held.read(),
            Self::Prepared(kept) => kept.content.read(),
        };
        let Self::Stream(rest) = self else {
            return (self, BodyCopy(Rc::new(RefCell::new(Copying::Ended(Ok(whole))))));
        };
        let copy = Rc::new(RefCell::new(Copying::Growing { read: BytesMut::new(), reader: None }));
        (Self::Stream(Box::new(Copied { rest, admit: Box::new(admit), copy: copy.clone() })), BodyCopy(copy))
    }

    /// Length in bytes if it is known without reading.
    #[must_use]
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::Empty => Some(0),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::Held(held) => Some(held.size()),
            Self::Prepared(kept) => Some(kept.content.len()),
            Self::Stream(_) => None,
        }
    }

    /// Returns whether the body is known to have no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// The bytes without the unused capacity of a body that arrived in pieces, up to half of its memory. An isolate keeps
/// bodies for minutes.
fn trimmed(read: BytesMut) -> Bytes {
    let unused = read.capacity() - read.len();
    if unused > read.len() / 8 { Bytes::copy_from_slice(&read) } else { read.freeze() }
}

/// The bytes already read, then the rest of the stream.
pub struct Prefixed {
    pub read: Option<Bytes>,
    pub rest: Box<dyn ByteStream>,
}

impl Stream for Prefixed {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.read.take() {
            Some(read) => Poll::Ready(Some(Ok(read))),
            None => self.rest.poll_next_unpin(context),
        }
    }
}

impl ByteStream for Prefixed {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// A stream that copies its chunks as they pass.
struct Copied {
    rest: Box<dyn ByteStream>,
    admit: Box<dyn FnMut(usize) -> Result<(), NotCopied>>,
    copy: Rc<RefCell<Copying>>,
}

enum Copying {
    Growing { read: BytesMut, reader: Option<Waker> },
    Ended(Result<Bytes, NotCopied>),
}

/// The reason for the lack of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCopied {
    /// The body exceeds the limit.
    TooLarge,
    /// There is no room for the copy.
    NoRoom,
    /// The body broke off, or was not read to its end.
    Truncated,
}

impl Copied {
    /// Ends the copying and wakes the reader of the copy.
    fn end(&self, end: impl FnOnce(BytesMut) -> Result<Bytes, NotCopied>) {
        let mut copy = self.copy.borrow_mut();
        if let Copying::Growing { read, reader } = &mut *copy {
            let (read, reader) = (std::mem::take(read), reader.take());
            *copy = Copying::Ended(end(read));
            reader.into_iter().for_each(Waker::wake);
        }
    }
}

impl Stream for Copied {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = std::task::ready!(self.rest.poll_next_unpin(context));
        match &chunk {
            None => self.end(|read| Ok(trimmed(read))),
            Some(Err(_)) => self.end(|_| Err(NotCopied::Truncated)),
            Some(Ok(chunk)) => {
                let Self { admit, copy, .. } = &mut *self;
                let end = match &mut *copy.borrow_mut() {
                    Copying::Growing { read, .. } => {
                        // Without a reader, the copy would only take memory.
                        let is_unread = Rc::strong_count(copy) == 1;
                        let end = if is_unread { Err(NotCopied::Truncated) } else { admit(read.len() + chunk.len()) };
                        if end.is_ok() {
                            read.extend_from_slice(chunk);
                        }
                        end.err()
                    }
                    Copying::Ended(_) => None,
                };
                if let Some(end) = end {
                    self.end(|_| Err(end));
                }
            }
        }
        Poll::Ready(chunk)
    }
}

/// A dropped stream leaves an incomplete copy.
impl Drop for Copied {
    fn drop(&mut self) {
        self.end(|_| Err(NotCopied::Truncated));
    }
}

impl ByteStream for Copied {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Resolves with the copied body.
pub struct BodyCopy(Rc<RefCell<Copying>>);

impl Future for BodyCopy {
    type Output = Result<Bytes, NotCopied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self.0.borrow_mut() {
            Copying::Growing { reader, .. } => {
                *reader = Some(context.waker().clone());
                Poll::Pending
            }
            Copying::Ended(end) => Poll::Ready(end.clone()),
        }
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

impl From<Content> for Body {
    fn from(content: Content) -> Self {
        match content {
            Content::Here(bytes) => bytes.into(),
            Content::Held(held) => Self::Held(held),
        }
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
