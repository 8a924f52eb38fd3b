//! Starts the real parts that tests use. Each part has a free port and ends with its test. Redis is always a real
//! server.

/// Calls of single functions.
mod calls;
/// A clock that a test moves.
mod clock;
/// A pool of clusters.
mod cluster;
/// Requests from this process.
mod fetch;
/// Headers and cookies of responses.
mod headers;
/// Translates keys of the book into the store's layout.
mod layout;
/// Captures edgefront's log.
mod logs;
/// edgefront in this process.
mod native;
/// An origin that a test controls.
mod origin;
/// A database with read replicas.
mod regions;
/// An HTTP server in this process.
mod server;
/// A running edgefront, native or in workerd.
mod shop;
/// A clock that a test moves in steps, and the tasks that sleep by it.
mod stepped;
/// A row cache and its source.
mod stock;
/// A database of a real server behind a gateway.
mod store;
/// edgefront in workerd.
mod workerd;

pub use calls::{item, log_in, rank, request, touch};
pub use clock::TestClock;
pub use fetch::NativeFetch;
pub use headers::{cookie_pair, cookie_pairs, header, set_cookie, token_of};
pub use origin::{Asked, Reply, TestOrigin};
pub use regions::Regions;
pub use server::HttpServer;
pub(crate) use shop::scenarios;
pub use shop::{Shop, Tiers, client, eventually};
pub use stepped::Steps;
pub use stock::{Stock, row};
pub use store::{ORIGIN_KEY, SERVICE_KEY, SESSION_KEYS, Store, app, config};
