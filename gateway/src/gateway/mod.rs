//! Starts and stops a gateway.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use crate::{
    auth::Tokens,
    fault::{Fault, FaultInjector, FaultScope},
    handler::GatewayState,
    rate::CommandLimit,
    region::{Region, RegionError},
    script::ScriptShas,
    stream::Streams,
    traffic::{Counts, LogEntry, TrafficRecorder},
    upstream::Upstream,
};

/// Configuration, and errors of the start.
mod options;

/// Limits for connections and streams.
mod limits;

/// Counts connections and streams.
mod slots;

/// The shutdown signal.
mod stop;

/// Accepts connections.
mod listener;

pub use limits::{ConnectionLimits, StreamLimits};
pub use options::{Options, StartError};
pub(crate) use slots::{Slot, Slots};
pub(crate) use stop::Stop;
use stop::Stopper;

/// A running gateway. When dropped, it stops listening and closes its connections at once; [`Gateway::shutdown`] lets
/// requests end.
pub struct Gateway {
    address: SocketAddr,
    redis_version: String,
    state: Arc<GatewayState>,
    accept_task: JoinHandle<()>,
    stopper: Stopper,
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

        let region = match options.region {
            Some(region) => {
                let started = Region::start(region, &upstream, options.redis_timeout).await;
                Some(started.map_err(|error| match error {
                    RegionError::NoReplica => StartError::NoReplica,
                    RegionError::Other(cause) => StartError::Region(cause),
                })?)
            }
            None => None,
        };

        let listen_error = |cause| StartError::Listen { address: options.listen, cause };
        let listener = TcpListener::bind(options.listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let (limits, stream_limits) = limits::within_open_files(options.limits, options.streams, limits::open_files());
        let (stopper, stop) = stop::channel();
        let state = Arc::new(GatewayState {
            tokens: Tokens { full: options.token, read_only: options.read_only_token },
            upstream,
            region,
            redis_timeout: options.redis_timeout,
            body_timeout: options.limits.body_timeout,
            script_shas: ScriptShas::default(),
            traffic: TrafficRecorder::default(),
            faults: FaultInjector::default(),
            command_limit: CommandLimit::per_second(options.max_commands_per_second, Instant::now()),
            streams: Streams::new(stream_limits, options.redis_timeout, stop.clone()),
        });
        let accept_task = tokio::spawn(listener::accept(listener, limits, Arc::clone(&state), stop));
        Ok(Self { address, redis_version, state, accept_task, stopper })
    }

    /// Stops listening, ends the streams with a last event, and waits for the requests that are in progress, at most
    /// for `limit`.
    pub async fn shutdown(mut self, limit: Duration) {
        self.stopper.stop();
        // The drop aborts the requests that have not ended by then.
        let _ = timeout(limit, &mut self.accept_task).await;
        if let Some(region) = &self.state.region {
            region.release(&self.state.upstream).await;
        }
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

    /// Requests that were forwarded to the primary of another region.
    #[must_use]
    pub fn forwarded(&self) -> u64 {
        self.state.region.as_ref().map_or(0, Region::forwarded)
    }

    /// Changes [`RegionOptions::lag`](crate::RegionOptions::lag), if the gateway has a delayed link. It holds for bytes
    /// under way, too: a long lag stops the replication, a short one lets it catch up.
    pub fn set_lag(&self, lag: Duration) {
        if let Some(region) = &self.state.region {
            region.set_lag(lag);
        }
    }

    /// Changes [`RegionOptions::latency`](crate::RegionOptions::latency).
    pub fn set_latency(&self, latency: Duration) {
        if let Some(region) = &self.state.region {
            region.set_latency(latency);
        }
    }

    /// Allows `budget` commands until the next call, in place of [`Options::max_commands_per_second`]: for tests with a
    /// clock of their own. `None` ends the limit.
    pub fn set_command_budget(&self, budget: Option<u32>) {
        self.state.command_limit.set_budget(budget);
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
