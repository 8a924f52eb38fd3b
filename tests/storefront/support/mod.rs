//! Starts real parts for tests, each on a free port, each ended with the test. Nothing here stands in for Redis.
#![expect(dead_code, reason = "each part is for several suites, which come and go")]

/// Time that a test moves.
mod clock;
/// HTTP natively.
mod fetch;
/// A database of a real server, behind a gateway of its own.
mod store;

pub use clock::TestClock;
pub use fetch::NativeFetch;
pub use store::Store;
