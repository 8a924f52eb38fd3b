//! `Fetch` on this machine, with the behaviour of the platform: it passes on redirects and compressed bodies, and
//! streams bodies in both directions.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use edgefront::ports::fetch::{Body, ByteStream, Collected, Fetch, FetchError, Request, Response};
use futures_util::{
    Stream, StreamExt, TryStreamExt,
    future::LocalBoxFuture,
    stream::{self, LocalBoxStream},
};
use tokio::sync::mpsc;
use upstash_rest::{ExchangeTerms, TransportError};

/// HTTP over real sockets. Its time limits count real time, also beside a [`super::TestClock`].
#[derive(Clone)]
pub struct NativeFetch(reqwest::Client);

impl NativeFetch {
    pub fn new() -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        Self(client.expect("a client without TLS needs nothing of the system"))
    }
}

impl Fetch for NativeFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            let mut request = request.map(send_body);
            // The platform also takes the host from the URL.
            request.headers_mut().remove(http::header::HOST);
            let request = reqwest::Request::try_from(request).map_err(|_| FetchError::Unreachable)?;
            let answer = tokio::time::timeout(deadline, self.0.execute(request)).await;
            let response = answer.map_err(|_| FetchError::Timeout)?.map_err(|_| FetchError::Unreachable)?;
            let length = response.content_length();
            let (head, body) = http::Response::from(response).into_parts();
            let body = match length {
                Some(0) => Body::Empty,
                _ => stream_body(http_body_util::BodyDataStream::new(body).map_err(io::Error::other)),
            };
            Ok(Response::from_parts(head, body))
        })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let whole = async {
                let (head, body) = self.fetch(request.map(Body::from), terms.deadline).await?.into_parts();
                match body.collect(terms.limit).await {
                    Ok(Collected::Whole(body)) => Ok(http::Response::from_parts(head, body)),
                    _ => Err(FetchError::Unreachable.into()),
                }
            };
            tokio::time::timeout(terms.deadline, whole).await.unwrap_or(Err(FetchError::Timeout.into()))
        })
    }
}

/// A `Body` stays on this thread, but the client may read its body on another one. So a task sends the chunks through a
/// channel, which holds two of them.
fn send_body(body: Body) -> reqwest::Body {
    match body {
        Body::Empty => reqwest::Body::default(),
        Body::Bytes(bytes) => bytes.into(),
        Body::Held(held) => held.read().into(),
        Body::Prepared(kept) => kept.content.read().into(),
        Body::Stream(mut chunks) => {
            let (sender, receiver) = mpsc::channel(2);
            tokio::task::spawn_local(async move {
                while let Some(chunk) = chunks.next().await {
                    if sender.send(chunk).await.is_err() {
                        break;
                    }
                }
            });
            reqwest::Body::wrap_stream(stream::unfold(receiver, async |mut receiver| {
                Some((receiver.recv().await?, receiver))
            }))
        }
    }
}

/// A body of these chunks.
pub fn stream_body(chunks: impl Stream<Item = io::Result<Bytes>> + 'static) -> Body {
    Body::Stream(Box::new(Chunks(chunks.boxed_local())))
}

struct Chunks(LocalBoxStream<'static, io::Result<Bytes>>);

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl ByteStream for Chunks {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
