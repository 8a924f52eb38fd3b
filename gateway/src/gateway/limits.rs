//! Limits for connections: how many, and how long they may be silent.

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
    pub(super) fn within_open_files(self, files: usize) -> Self {
        let room = files.saturating_sub(RESERVED_FILES).max(1);
        if room >= self.max_connections {
            return self;
        }
        let per_address = (room - room / 4).min(self.max_connections_per_address);
        Self { max_connections: room, max_connections_per_address: per_address, ..self }
    }
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
        for (files, total, per_address) in
            [(usize::MAX, 1_000, 500), (1_032, 1_000, 500), (1_024, 992, 500), (200, 168, 126), (33, 1, 1), (0, 1, 1)]
        {
            let limits = ConnectionLimits::DEFAULT.within_open_files(files);
            let actual = (limits.max_connections, limits.max_connections_per_address);
            assert_eq!(actual, (total, per_address), "{files} files");
        }
    }
}
