//! An origin that a test controls: a real HTTP server that sends the configured replies and records the requests.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use edgefront::ports::fetch::{Body, Request, Response};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::sync::watch;

use super::{HttpServer, fetch::stream_body, header};

/// A running origin. It ends when dropped.
pub struct TestOrigin {
    server: HttpServer,
    state: Arc<State>,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    /// Empty if the reply is [`Reply::echo`].
    pub body: Bytes,
}

impl Asked {
    /// A header's value, or "" without one.
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }
}

type Rule = Box<dyn Fn(&Asked) -> Reply + Send>;

struct State {
    rule: Mutex<Rule>,
    asked: Mutex<Vec<Asked>>,
    received: AtomicU64,
    /// Bytes of [`Reply::zeros`]. Each body that is being sent holds a reference.
    sent: Arc<AtomicU64>,
    /// The origin holds all requests after this number.
    held: watch::Sender<usize>,
}

/// Ignores that another test's thread panicked with the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestOrigin {
    /// Starts an origin. It replies with a page that names the path, until a test configures another reply.
    pub fn start() -> Self {
        let rule: Rule = Box::new(|asked| Reply::html(format!("<h1>{}</h1>", asked.path)));
        let state = Arc::new(State {
            rule: Mutex::new(rule),
            asked: Mutex::default(),
            received: AtomicU64::new(0),
            sent: Arc::default(),
            held: watch::Sender::new(usize::MAX),
        });
        let for_server = state.clone();
        let server = HttpServer::start(move || {
            std::rc::Rc::new(move |request| {
                let state = for_server.clone();
                Box::pin(async move { state.answer(request).await })
            })
        });
        Self { server, state }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Sends `reply` to every request from now on.
    pub fn answer(&self, reply: Reply) {
        self.answer_with(move |_| reply.clone());
    }

    /// Sends the reply of `rule` to every request from now on.
    pub fn answer_with(&self, rule: impl Fn(&Asked) -> Reply + Send + 'static) {
        *lock(&self.state.rule) = Box::new(rule);
    }

    /// All requests since the start, in the order of their arrival.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.state.asked).clone()
    }

    /// The number of requests since the start.
    pub fn count(&self) -> usize {
        lock(&self.state.asked).len()
    }

    /// The last request. Panics if there is none.
    pub fn last(&self) -> Asked {
        self.asked().pop().expect("the origin was asked")
    }

    /// Bytes of request bodies that have arrived, including bodies that have not ended.
    pub fn received(&self) -> u64 {
        self.state.received.load(Ordering::SeqCst)
    }

    /// Bytes that bodies of [`Reply::zeros`] have sent.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// The number of [`Reply::zeros`] whose body is being sent.
    pub fn sending(&self) -> usize {
        Arc::strong_count(&self.state.sent) - 1
    }

    /// Records requests and does not reply until [`TestOrigin::release`]. A [`Reply::then_held`] sends its first part
    /// at once, and the rest after the release.
    pub fn hold(&self) {
        self.hold_after(0);
    }

    /// As [`TestOrigin::hold`], but only for requests after the first `requests` since the start.
    pub fn hold_after(&self, requests: usize) {
        self.state.held.send_replace(requests);
    }

    /// Ends [`TestOrigin::hold`].
    pub fn release(&self) {
        self.hold_after(usize::MAX);
    }
}

impl State {
    async fn answer(&self, request: Request) -> Option<Response> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut asked = Asked { method: head.method, path, headers: head.headers, body: Bytes::new() };
        let reply = lock(&self.rule)(&asked);
        if let Content::Echo = reply.content {
            lock(&self.asked).push(asked);
            return Some(reply.response(self, 0, body));
        }
        asked.body = self.read(body).await?;
        let number = {
            let mut all = lock(&self.asked);
            all.push(asked);
            all.len()
        };
        tokio::time::sleep(reply.delay).await;
        if !matches!(reply.content, Content::Held(..)) {
            self.held.subscribe().wait_for(|free| number <= *free).await.ok()?;
        }
        if let Content::Nothing = reply.content {
            return None;
        }
        Some(reply.response(self, number, Body::Empty))
    }

    /// None if the client disconnects.
    async fn read(&self, body: Body) -> Option<Bytes> {
        let mut chunks = match body {
            Body::Empty => return Some(Bytes::new()),
            Body::Bytes(bytes) => return Some(bytes),
            Body::Held(held) => return Some(held.read()),
            Body::Prepared(kept) => return Some(kept.content.read()),
            Body::Stream(chunks) => chunks,
        };
        let mut read = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.ok()?;
            self.received.fetch_add(chunk.len() as u64, Ordering::SeqCst);
            read.extend_from_slice(&chunk);
        }
        Some(read.into())
    }
}

/// A response of the origin.
#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    delay: Duration,
    content: Content,
    hides_length: bool,
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Bytes),
    Echo,
    Held(Bytes, Bytes),
    Truncated(Bytes),
    Zeros(u64),
    Nothing,
}

impl Reply {
    fn new(content: Content) -> Self {
        let (headers, delay) = (HeaderMap::new(), Duration::ZERO);
        Self { status: StatusCode::OK, headers, delay, content, hides_length: false }
    }

    /// 200 with `body` as HTML.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::new(Content::Bytes(body.into())).header("content-type", "text/html; charset=utf-8")
    }

    /// `status` without a body.
    pub fn status(status: u16) -> Self {
        Self { status: StatusCode::from_u16(status).expect("a status"), ..Self::new(Content::Bytes(Bytes::new())) }
    }

    /// Sends the request's body back while it arrives.
    pub fn echo() -> Self {
        Self::new(Content::Echo)
    }

    /// Sends `first` at once, and `rest` after [`TestOrigin::release`].
    pub fn then_held(first: impl Into<Bytes>, rest: impl Into<Bytes>) -> Self {
        Self::new(Content::Held(first.into(), rest.into()))
    }

    /// Announces 1,000 bytes more than `body` has, and closes the connection after it.
    pub fn truncated(body: impl Into<Bytes>) -> Self {
        Self::new(Content::Truncated(body.into())).header("content-type", "text/html; charset=utf-8")
    }

    /// A body of `length` zeros, made while it is sent.
    pub fn zeros(length: u64) -> Self {
        Self::new(Content::Zeros(length))
    }

    /// Omits `Content-Length`.
    pub fn chunked(mut self) -> Self {
        self.hides_length = true;
        self
    }

    /// Closes the connection without a response.
    pub fn nothing() -> Self {
        Self::new(Content::Nothing)
    }

    /// Sets the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).expect("a status");
        self
    }

    /// Adds a header. The value may have any bytes of Latin-1.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).expect("a header's value");
        self.headers.append(HeaderName::try_from(name).expect("a header's name"), value);
        self
    }

    /// Delays the response.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// `number`: that of the request.
    fn response(self, state: &State, number: usize, request_body: Body) -> Response {
        let mut length = None;
        let body = match self.content {
            Content::Bytes(bytes) => bytes.into(),
            Content::Echo => request_body,
            Content::Nothing => Body::Empty,
            Content::Held(first, rest) => {
                let mut held = state.held.subscribe();
                let rest = async move {
                    let released = held.wait_for(|free| number <= *free).await;
                    released.map_err(io::Error::other).map(|_| rest)
                };
                stream_body(stream::iter([Ok(first)]).chain(stream::once(rest)))
            }
            Content::Truncated(bytes) => {
                length = Some(bytes.len() as u64 + 1000);
                let end = async {
                    // Lets the server send the bytes before the error.
                    tokio::task::yield_now().await;
                    Err(io::Error::other("truncated, as told"))
                };
                stream_body(stream::iter([Ok(bytes)]).chain(stream::once(end)))
            }
            Content::Zeros(total) => {
                length = Some(total);
                let chunk = Bytes::from(vec![0; 64 << 10]);
                let chunks = stream::iter(0..total.div_ceil(chunk.len() as u64)).map(Ok);
                let sent = state.sent.clone();
                stream_body(chunks.map_ok(move |number| {
                    let left = total - number * chunk.len() as u64;
                    sent.fetch_add(left.min(chunk.len() as u64), Ordering::SeqCst);
                    chunk.slice(..chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX)))
                }))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        if let Some(length) = length.filter(|_| !self.hides_length) {
            response.headers_mut().insert("content-length", length.into());
        }
        response
    }
}
