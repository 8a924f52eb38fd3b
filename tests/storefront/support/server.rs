//! An HTTP server in this process, on a thread and a free port of its own. It uses edgefront's types for requests and
//! responses, streams bodies in both directions, and ends when dropped.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    rc::Rc,
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use edgefront::ports::fetch::{Body, Request, Response};
use futures_util::{Stream, StreamExt, TryStreamExt, future::LocalBoxFuture};
use http::Uri;
use http_body_util::{BodyDataStream, Either, Full, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{LocalSet, spawn_local},
};

use super::fetch::stream_body;

/// Returns the response; None closes the connection without one.
pub type Handler = Rc<dyn Fn(Request) -> LocalBoxFuture<'static, Option<Response>>>;

pub struct HttpServer {
    address: SocketAddr,
    /// The server ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts a server. Its thread calls `handler` once, and keeps the result.
    pub fn start(handler: impl FnOnce() -> Handler + Send + 'static) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket for tokio");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let listener = runtime.block_on(async { TcpListener::from_std(listener) }).expect("a listener");
            LocalSet::new().block_on(&runtime, async move {
                tokio::select! {
                    () = accept(listener, handler()) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let outcome = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = outcome
            && !thread::panicking()
        {
            panic!("the server's thread panicked: see above");
        }
    }
}

async fn accept(listener: TcpListener, handler: Handler) {
    while let Ok((socket, _)) = listener.accept().await {
        let handler = handler.clone();
        spawn_local(async move {
            // A client that disconnects ends only its own connection.
            let _ = serve(socket, handler).await;
        });
    }
}

async fn serve(socket: TcpStream, handler: Handler) -> hyper::Result<()> {
    socket.set_nodelay(true).ok();
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move {
            let answer = handler(read_request(request)).await;
            answer.map(write_response).ok_or_else(|| io::Error::other("the handler closes the connection"))
        }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await
}

/// Gives the request the absolute URI that edgefront expects.
fn read_request(request: hyper::Request<Incoming>) -> Request {
    let (mut head, body) = request.into_parts();
    let host = head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    head.uri = Uri::try_from(format!("http://{host}{path}")).unwrap_or_default();
    let body = match hyper::body::Body::size_hint(&body).exact() {
        Some(0) => Body::Empty,
        _ => stream_body(BodyDataStream::new(body).map_err(io::Error::other)),
    };
    Request::from_parts(head, body)
}

type Frames = Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>>>>;

fn write_response(response: Response) -> http::Response<Either<Full<Bytes>, StreamBody<Frames>>> {
    let (mut head, body) = response.into_parts();
    if let Body::Prepared(kept) = &body {
        head.headers.extend(kept.headers.clone());
    }
    Response::from_parts(head, body).map(|body| match body {
        Body::Empty => Either::Left(Full::default()),
        Body::Bytes(bytes) => Either::Left(Full::new(bytes)),
        Body::Held(bytes) => Either::Left(Full::new(bytes.read())),
        Body::Prepared(kept) => Either::Left(Full::new(kept.content.read())),
        Body::Stream(chunks) => Either::Right(StreamBody::new(chunks.map_ok(Frame::data).boxed_local())),
    })
}
