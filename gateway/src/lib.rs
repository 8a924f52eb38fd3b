//! The Upstash REST protocol in front of a real Redis or Valkey. `@upstash/redis` and edgefront talk to a server of
//! your own through it. The gateway keeps no data: every reply is the server's.
//!
//! ```no_run
//! # async fn example() -> Result<(), edgefront_gateway::StartError> {
//! use edgefront_gateway::{Gateway, Options};
//! let gateway = Gateway::start(Options::new("redis://127.0.0.1:6379/0", "a-secret-token")).await?;
//! println!("UPSTASH_REDIS_REST_URL={}", gateway.url()); // serves until `gateway` is dropped
//! # Ok(())
//! # }
//! ```
//!
//! | honoured | how |
//! |---|---|
//! | `POST /` `["SET","k","v"]` | `{"result":…}`, or 400 `{"error":"CODE text"}` |
//! | `/CMD/arg/arg` by GET, HEAD, POST, PUT | a body is the next argument, byte for byte; then the query's pairs |
//! | `POST /pipeline` | 200, one `{"result"}` or `{"error"}` for each command |
//! | `POST /multi-exec` | the same, atomic; a discarded transaction is one 400 `{"error"}` |
//! | `Authorization: Bearer`, `?_token=` | compared in constant time; 401 `WRONGPASS`, also without `Bearer` |
//! | a read-only token | the server's `@read` commands but SCAN and KEYS, else `NOPERM` |
//! | `Upstash-Encoding: base64` | every string of a result but the status `OK`; without it, invalid UTF-8 is lossy |
//! | `Upstash-Response-Format: resp2` | raw RESP2 replies, one after the other; a transaction stays JSON |
//! | `upstash-sync-token` | accepted and returned; one server always reads its own writes, a replica waits for them |
//! | `/subscribe/…`, `/psubscribe/…`, `/monitor` with `Accept: text/event-stream` | server-sent events; the full token only |
//! | `#!lua flags=allow-key-locking` | taken out before the server sees it; the script keeps its own SHA |
//!
//! A Redis Cluster (`redis://…?cluster`) differs in these points:
//!
//! - The parts of a pipeline that belong to different servers run concurrently.
//! - The keys of a command, a script or a transaction must be in one slot (`CROSSSLOT`), so edgefront needs `SHARDS` > 1.
//! - DBSIZE, KEYS, FLUSHALL and SCRIPT ask all servers. There is no SCAN.
//! - A stream is connected to one server, and there is no MONITOR.
//!
//! | refused | answer |
//! |---|---|
//! | null or nested arguments | 400, nothing is executed |
//! | another HTTP method | 405 |
//! | a command over 10 MiB, a body over 64 MiB | 413 |
//! | a result over 10 MiB or 128 levels, results over 64 MiB in a request, a key over 32 KiB | 400, or the item's error |
//! | over 1,000 commands or 1,048,576 arguments in a request | 400 |
//! | a body that does not arrive in time | 408 |
//! | more streams than [`StreamLimits`] allows | 503 |
//! | changes or holds the shared connection: SELECT, WATCH, BLPOP, XREAD BLOCK … | 400, or the item's error |
//! | more commands than [`Options::max_commands_per_second`] | 429: nothing was executed |
//! | administers the server: CONFIG, SHUTDOWN, REPLICAOF … | 400, or the item's error |
//! | any command while Redis is unreachable | 503: nothing was executed |
//! | the connection broke during the command, or no reply came in time | 502: it may have been executed |
//! | `LOADING`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY`: Redis refuses commands for now | 503, or the item's error |
//!
//! Every 503 has `Retry-After`. A script that returns an error with one of these codes gets 503 too. Clients share one
//! connection to each Redis server; a reply with any bytes, of any depth and size, harms only its own command. Slow,
//! silent and too many HTTP connections are closed, also before authentication: see [`ConnectionLimits`]. A stream
//! has its own connection to the server; one whose client reads too slowly ends.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

// In reading order: a request travels from the listener through authentication, parsing and policy to the upstream and
// back.

/// The listener and the connections.
mod gateway;

/// One HTTP exchange, from request to response, by the modules below.
mod handler;

/// Authentication by token.
mod auth;

/// Commands from a body or a path.
pub mod request;

/// Refused commands, limits, the read-only token.
mod policy;

/// Scripts whose `flags` line was removed.
mod script;

/// Server-sent events: SUBSCRIBE, PSUBSCRIBE and MONITOR.
mod stream;

/// Redis: one server, or a cluster.
mod upstream;

/// One region of a database with read replicas.
mod region;

/// Replies as JSON, base64 or RESP2.
pub mod reply;

/// Error responses and their texts.
mod error;

/// A record of the traffic, for tests that count.
mod traffic;

/// Injected faults, for tests of clients.
mod fault;

/// A limit of commands per second.
mod rate;

/// A throw-away Redis or Valkey, for tests and local development.
pub mod server;

pub use fault::{Fault, FaultScope};
pub use gateway::{ConnectionLimits, Gateway, Options, StartError, StreamLimits};
pub use region::RegionOptions;
pub use request::RequestKind;
pub use traffic::{Counts, LogEntry};
