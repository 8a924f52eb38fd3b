//! Starts and ends a gateway. It has a connection to Redis before it says that it runs.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use crate::{
    Counts, Entry, Fault, When,
    access::Tokens,
    exchange::{self, Shared},
    fault::Faults,
    script::Scripts,
    tally::Tally,
    upstream::Upstream,
};

/// What a gateway needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis://[user:password@]host[:port][/database]`, or `redis://[user:password@]host[:port]?cluster` for the cluster that this
    /// server is of.
    pub redis_url: String,
    /// The token that may do everything; not empty.
    pub token: String,
    /// A token that may only read.
    pub read_only_token: Option<String>,
    /// Where to listen; port 0 takes a free one. 127.0.0.1:0 by default: whoever reaches it can try tokens.
    pub listen: SocketAddr,
}

impl Options {
    /// Options for this Redis and this token, listening on a free port of 127.0.0.1.
    pub fn new(redis_url: impl Into<String>, token: impl Into<String>) -> Self {
        Self {
            redis_url: redis_url.into(),
            token: token.into(),
            read_only_token: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        }
    }
}

/// Why a gateway did not start; each message has the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the token is empty: choose one, clients send it as UPSTASH_REDIS_REST_TOKEN")]
    EmptyToken,
    #[error(
        "cannot use the Redis URL: {0}; it looks like redis://127.0.0.1:6379/0, or for a cluster redis://127.0.0.1:6379?cluster"
    )]
    Url(String),
    #[error("cannot use Redis at {address}: {cause}; is it running, are address, password and database right?")]
    Redis { address: String, cause: String },
    #[error("cannot listen on {address}: {cause}; choose another address")]
    Listen { address: SocketAddr, cause: io::Error },
}

/// A running gateway; on drop it stops listening and drops its connections.
pub struct Gateway {
    address: SocketAddr,
    server: String,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Gateway {
    /// Connects to Redis, then listens; serves on the current tokio runtime.
    ///
    /// # Errors
    /// When the URL is wrong, Redis is unreachable or refuses the login, or the address is taken.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        if options.token.is_empty() || options.read_only_token.as_deref() == Some("") {
            return Err(StartError::EmptyToken);
        }
        let upstream = Upstream::new(&options.redis_url).map_err(StartError::Url)?;
        let unusable = |cause| StartError::Redis { address: upstream.address(), cause };
        upstream.connect().await.map_err(unusable)?;
        let server = upstream.version().await.map_err(|failure| unusable(failure.to_string()))?;

        let unavailable = |cause| StartError::Listen { address: options.listen, cause };
        let listener = TcpListener::bind(options.listen).await.map_err(unavailable)?;
        let address = listener.local_addr().map_err(unavailable)?;
        let shared = Arc::new(Shared {
            tokens: Tokens { full: options.token, read_only: options.read_only_token },
            upstream,
            scripts: Scripts::default(),
            tally: Tally::default(),
            faults: Faults::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, server, shared, accepting })
    }

    /// `http://127.0.0.1:PORT`, for `UPSTASH_REDIS_REST_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The server behind it, such as `valkey 9.1.2`.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What reached Redis since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.tally.counts()
    }

    /// The names of the commands of the last 1,000 requests that reached Redis, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.shared.tally.log()
    }

    /// Lets every authorised request from now on meet this fault; `None` ends it.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.shared.faults.set(fault.map(|fault| (fault, When::Always)), self.counts().requests);
    }

    /// Lets some of the authorised requests from now on meet this fault.
    pub fn set_fault_when(&self, fault: Fault, when: When) {
        self.shared.faults.set(Some((fault, when)), self.counts().requests);
    }

    /// How many authorised requests have come since the start, those that met a fault and never reached Redis among them.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.shared.faults.received()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Its `JoinSet` takes the connections along.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                // Out of file descriptors, most likely: it passes when connections end.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small answers must not wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| exchange::answer(Arc::clone(&shared), request));
    // It ends with an error when the client goes away or a fault hangs up: nobody is there to tell.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
