//! Limits for connections and streams: how many, and how long they may be silent.

use std::time::Duration;

/// File descriptors that are kept for everything but HTTP connections: Redis, the listener, standard streams.
const RESERVED_FILES: usize = 32;

/// Limits for connections. They hold before authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Time for the head of the next request to arrive, from the start of the connection or the end of the previous
    /// response. So it also limits idle connections. Default: 30 s.
    pub head_timeout: Duration,
    /// Time for a body to arrive, and for a client to take the next part of a response. Default: 60 s.
    pub body_timeout: Duration,
    /// Connections at the same time. The limit for open files may lower it. Default: 1,000.
    pub max_connections: usize,
    /// Connections of one address at the same time; of IPv6, a network of 64 bits counts as one address. Default: 500.
    pub max_connections_per_address: usize,
}

impl ConnectionLimits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        head_timeout: Duration::from_secs(30),
        body_timeout: Duration::from_mins(1),
        max_connections: 1_000,
        max_connections_per_address: 500,
    };

    /// Lowers the limits if the process may not open so many files. Then one address can take three quarters of the
    /// connections, so that others find room.
    fn within_open_files(self, files: usize) -> Self {
        let room = files.max(1);
        if room >= self.max_connections {
            return self;
        }
        let per_address = (room - room / 4).min(self.max_connections_per_address);
        Self { max_connections: room, max_connections_per_address: per_address, ..self }
    }
}

/// Limits for streams: SUBSCRIBE, PSUBSCRIBE and MONITOR. Each stream is an HTTP connection and a connection to Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Streams at the same time. The limit for open files may lower it. Default: 200.
    pub max_streams: usize,
    /// Streams of one address at the same time; of IPv6, a network of 64 bits counts as one address. Default: 100.
    pub max_streams_per_address: usize,
    /// Bytes of events that may wait for a client. If an event finds less room, the stream ends, unless it is the only
    /// event that waits. Default: 1 MiB.
    pub max_buffered_bytes: usize,
    /// A stream without events for this long gets a comment. Default: 15 s.
    pub heartbeat: Duration,
}

impl StreamLimits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_streams: 200,
        max_streams_per_address: 100,
        max_buffered_bytes: 1 << 20,
        heartbeat: Duration::from_secs(15),
    };

    /// Lowers the limits if the process may not open so many files: streams get at most a quarter of them.
    fn within_open_files(self, files: usize) -> Self {
        let max_streams = self.max_streams.min(files / 4);
        Self { max_streams, max_streams_per_address: self.max_streams_per_address.min(max_streams), ..self }
    }
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Lowers the limits if the process may not open so many files. A stream needs one file more than its HTTP connection.
pub(super) fn within_open_files(
    connections: ConnectionLimits,
    streams: StreamLimits,
    files: usize,
) -> (ConnectionLimits, StreamLimits) {
    let room = files.saturating_sub(RESERVED_FILES);
    let streams = streams.within_open_files(room);
    (connections.within_open_files(room - streams.max_streams), streams)
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The number of files that this process may open.
pub(super) fn open_files() -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let limit = None::<u64>;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_open_files_lower_the_limits() {
        for (files, connections, streams) in [
            (usize::MAX, (1_000, 500), (200, 100)),
            (1_232, (1_000, 500), (200, 100)),
            (1_024, (792, 500), (200, 100)),
            (200, (126, 95), (42, 42)),
            (33, (1, 1), (0, 0)),
            (0, (1, 1), (0, 0)),
        ] {
            let actual = within_open_files(ConnectionLimits::DEFAULT, StreamLimits::DEFAULT, files);
            assert_eq!((actual.0.max_connections, actual.0.max_connections_per_address), connections, "{files} files");
            assert_eq!((actual.1.max_streams, actual.1.max_streams_per_address), streams, "{files} files");
        }
    }
}
