//! A shop on a free port, and the doctor as a process.

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

/// A request that reached the shop.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path and query.
    pub path: String,
    pub cookies: String,
    headers: HeaderMap,
    /// Number of requests before this one.
    pub number: usize,
}

impl Asked {
    /// The value of a header; empty without one.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A page of the shop.
pub struct Reply(Response<Full<Bytes>>);

impl Reply {
    /// HTML with the given body.
    pub fn html(body: impl Into<String>) -> Self {
        let reply = Self(Response::new(Full::new(Bytes::from(body.into()))));
        reply.with("content-type", "text/html; charset=utf-8")
    }

    pub fn status(status: u16) -> Self {
        Self::html("").with_status(status)
    }

    pub fn with_status(mut self, status: u16) -> Self {
        *self.0.status_mut() = status.try_into().unwrap();
        self
    }

    /// One more header line.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let name = header::HeaderName::from_static(name);
        if name == header::CONTENT_TYPE {
            self.0.headers_mut().remove(&name);
        }
        self.0.headers_mut().append(name, value.parse().unwrap());
        self
    }
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A running shop.
pub struct Shop {
    pub url: String,
    seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Asked>>,
    now: AtomicUsize,
    at_once: AtomicUsize,
}

impl Shop {
    /// Starts a shop. `/robots.txt` is 404 unless the handler has a status 200 for it with a text.
    pub fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let seen = Arc::<Seen>::default();
        let (for_server, handler) = (seen.clone(), Arc::<Handler>::from(Box::new(handler) as Box<Handler>));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, handler, for_server) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { url, seen, stop: Some(stop), thread: Some(thread) }
    }

    pub fn requests(&self) -> Vec<Asked> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// The largest number of requests that were open at the same time.
    pub fn at_once(&self) -> usize {
        self.seen.at_once.load(Ordering::SeqCst)
    }

    /// Runs the doctor with `--json`, which must succeed.
    pub fn examine(&self, options: &[&str]) -> Value {
        let run = doctor(&[&[self.url.as_str(), "--json"], options].concat());
        assert_eq!(run.code, Some(0), "{}", run.errors);
        serde_json::from_str(&run.output).unwrap()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(listener: TcpListener, handler: Arc<Handler>, seen: Arc<Seen>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (handler, seen) = (handler.clone(), seen.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, handler.clone(), seen.clone()));
            // A client that disconnects ends only its own connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    handler: Arc<Handler>,
    seen: Arc<Seen>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
    seen.at_once.fetch_max(now, Ordering::SeqCst);
    // Other requests may arrive here.
    tokio::task::yield_now().await;
    let text = |value: &header::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let cookies = request.headers().get_all(header::COOKIE).iter().map(text).collect::<Vec<_>>().join("; ");
    let asked = {
        let mut requests = seen.requests.lock().unwrap();
        let headers = request.headers().clone();
        let asked = Asked { path: request.uri().to_string(), cookies, headers, number: requests.len() };
        requests.push(asked.clone());
        asked
    };
    let reply = handler(&asked);
    let has_robots = reply.0.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/plain");
    let reply = if asked.path == "/robots.txt" && !has_robots { Reply::status(404) } else { reply };
    seen.now.fetch_sub(1, Ordering::SeqCst);
    Ok(reply.0)
}

/// A finished run.
pub struct Run {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

/// Runs the doctor without pauses.
pub fn doctor(arguments: &[&str]) -> Run {
    doctor_with_login(None, arguments)
}

/// Runs the doctor without pauses. `login`: the variable `DOCTOR_LOGIN`.
pub fn doctor_with_login(login: Option<&str>, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgefront-doctor"));
    command.args(["--pause", "0"]).args(arguments).env_remove("DOCTOR_LOGIN");
    let output = command.envs(login.map(|login| ("DOCTOR_LOGIN", login))).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
}

/// The report on a kind of page.
pub fn kind<'a>(report: &'a Value, name: &str) -> &'a Value {
    let kinds = report["kinds"].as_array().unwrap();
    kinds.iter().find(|kind| kind["kind"] == name).unwrap_or_else(|| panic!("no kind {name} in {kinds:#?}"))
}

/// Number of pages of a kind that this visitor gets from the store.
pub fn hits(kind: &Value, visitor: &str) -> u64 {
    let visitors = kind["visitors"].as_array().unwrap();
    let own = visitors.iter().find(|report| report["visitor"] == visitor);
    own.unwrap_or_else(|| panic!("no {visitor} in {visitors:#?}"))["gets_stored_page"].as_u64().unwrap()
}

/// Links to `/books/0/` and so on.
pub fn book_links(count: usize) -> String {
    (0..count).map(|number| format!("<a href='/books/{number}/'>Book</a>")).collect::<Vec<_>>().concat()
}
