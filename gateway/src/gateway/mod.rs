//! Starts and stops a gateway.

use std::{net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, task::AbortHandle};

use crate::{
    auth::Tokens,
    fault::{Fault, FaultInjector, FaultScope},
    handler::GatewayState,
    script::ScriptShas,
    traffic::{Counts, LogEntry, TrafficRecorder},
    upstream::Upstream,
};

/// Configuration, and errors of the start.
mod options;

/// Limits for connections.
mod limits;

/// Counts connections.
mod slots;

/// Accepts connections.
mod listener;

pub use limits::ConnectionLimits;
pub use options::{Options, StartError};

/// A running gateway. When dropped, it stops listening and closes its connections.
pub struct Gateway {
    address: SocketAddr,
    redis_version: String,
    state: Arc<GatewayState>,
    accept_task: AbortHandle,
}

impl Gateway {
    /// Connects to Redis, then listens. Serves on the current tokio runtime.
    ///
    /// # Errors
    /// When an option is not valid, Redis is unreachable or refuses the login, or the address is in use.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        if options.token.is_empty() || options.read_only_token.as_deref() == Some("") {
            return Err(StartError::EmptyToken);
        }
        let upstream = Upstream::new(&options.redis_url, options.redis_timeout).map_err(StartError::Url)?;
        let redis_error = |cause| StartError::Redis { address: upstream.address(), cause };
        upstream.connect().await.map_err(redis_error)?;
        let redis_version = upstream.server_version().await.map_err(|error| redis_error(error.to_string()))?;

        let listen_error = |cause| StartError::Listen { address: options.listen, cause };
        let listener = TcpListener::bind(options.listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let state = Arc::new(GatewayState {
            tokens: Tokens { full: options.token, read_only: options.read_only_token },
            upstream,
            redis_timeout: options.redis_timeout,
            body_timeout: options.limits.body_timeout,
            script_shas: ScriptShas::default(),
            traffic: TrafficRecorder::default(),
            faults: FaultInjector::default(),
        });
        let limits = options.limits.within_open_files(limits::open_files());
        let accept_task = tokio::spawn(listener::accept(listener, limits, Arc::clone(&state))).abort_handle();
        Ok(Self { address, redis_version, state, accept_task })
    }

    /// `http://127.0.0.1:PORT`, for `UPSTASH_REDIS_REST_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Name and version of the Redis server, such as `valkey 9.1.2`.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.redis_version
    }

    /// Totals of requests and commands that reached Redis since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state.traffic.counts()
    }

    /// The last 1,000 requests that reached Redis, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        self.state.traffic.log()
    }

    /// Injects a fault into all authorized requests from now on; `None` ends it.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.state.faults.set(fault.map(|fault| (fault, FaultScope::Always)), self.counts().requests);
    }

    /// Injects a fault into some of the authorized requests from now on.
    pub fn set_fault_for(&self, fault: Fault, scope: FaultScope) {
        self.state.faults.set(Some((fault, scope)), self.counts().requests);
    }

    /// Authorized requests since the start. Unlike [`Counts::requests`], this includes requests that never reached
    /// Redis because of a fault.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.state.faults.received()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}
