//! Configuration of a gateway, and the reasons why it does not start.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use super::limits::{ConnectionLimits, StreamLimits};
use crate::region::RegionOptions;

/// Configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Options {
    /// `redis://[user:password@]host[:port][/database]`. For the Redis Cluster that a server belongs to:
    /// `redis://[user:password@]host[:port]?cluster`.
    pub redis_url: String,
    /// The token with full access. Must not be empty.
    pub token: String,
    /// A token that may only read; `None` by default. Must not be empty.
    pub read_only_token: Option<String>,
    /// The address to listen on; port 0 picks a free port. Default: 127.0.0.1:0, because every client that can connect
    /// can guess tokens.
    pub listen: SocketAddr,
    /// Time limit for each exchange with Redis: connecting, sending, and the reply. Default: 10 s.
    pub redis_timeout: Duration,
    /// Limits for connections. Default: [`ConnectionLimits::DEFAULT`].
    pub limits: ConnectionLimits,
    /// The region of a database with read replicas, in which `redis_url` is near. Default: `None`, one server has all.
    pub region: Option<RegionOptions>,
    /// Commands per second, like the limit of a plan; `None` by default. A request over it gets 429. A script is one
    /// command.
    pub max_commands_per_second: Option<u32>,
    /// Limits for streams. Default: [`StreamLimits::DEFAULT`].
    pub streams: StreamLimits,
}

impl Options {
    /// The default of [`Options::redis_timeout`].
    pub const REDIS_TIMEOUT: Duration = Duration::from_secs(10);

    /// Options for this Redis and this token, and the defaults for the rest.
    pub fn new(redis_url: impl Into<String>, token: impl Into<String>) -> Self {
        Self {
            redis_url: redis_url.into(),
            token: token.into(),
            read_only_token: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            redis_timeout: Self::REDIS_TIMEOUT,
            limits: ConnectionLimits::DEFAULT,
            region: None,
            max_commands_per_second: None,
            streams: StreamLimits::DEFAULT,
        }
    }
}

/// The reason why a gateway did not start. Each message has the cause and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// [`Options::token`] or [`Options::read_only_token`] is empty.
    #[error("a token is empty: choose one, clients send it as UPSTASH_REDIS_REST_TOKEN")]
    EmptyToken,
    /// [`Options::redis_url`] is not valid. Contains the cause, without the password.
    #[error(
        "cannot use the Redis URL: {0}; use redis://127.0.0.1:6379/0, or redis://127.0.0.1:6379?cluster for a Redis Cluster"
    )]
    Url(String),
    /// Redis is unreachable or refuses the login.
    #[error("cannot use Redis at {address}: {cause}; check that it is running, and its address, password and database")]
    Redis {
        /// `host:port` of Redis.
        address: String,
        /// The cause, without the password.
        cause: String,
    },
    /// The region does not work: the primary is unreachable, or the replica does not receive its data.
    #[error("cannot work as a region: {0}; check that the primary is running, and the replica's masterauth")]
    Region(String),
    /// [`RegionOptions::latency`] or [`RegionOptions::lag`] is given, but the primary is the Redis of the gateway.
    #[error(
        "latency and lag concern a replica, but the primary and the Redis URL name the same server: leave them out, or give the URL of a replica"
    )]
    NoReplica,
    /// The gateway cannot listen.
    #[error("cannot listen on {address}: {cause}; choose another address")]
    Listen {
        /// [`Options::listen`].
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
}
