//! Starts real parts for tests, each on a free port, each ended with the test. Nothing here stands in for Redis.

/// Single calls that edgefront itself sends in other forms.
mod calls;
/// Time that a test moves.
mod clock;
/// A cluster of real servers.
mod cluster;
/// HTTP out, natively.
mod fetch;
/// The book's keys, wherever they lie.
mod layout;
/// edgefront's log.
mod logs;
/// edgefront behind a native HTTP server.
mod native;
/// A storefront under the test's control.
mod origin;
/// Servers of several regions.
mod regions;
/// HTTP in, natively.
mod server;
/// A running edgefront, native or in workerd.
mod shop;
/// Time that a test moves, and tasks that sleep in it.
mod stepped;
/// Rows of a shop, and their copies.
mod stock;
/// A database of a real server, behind a gateway of its own.
mod store;
/// edgefront in workerd.
mod workerd;

pub use calls::{log_in, rank, touch};
pub use clock::TestClock;
pub use fetch::NativeFetch;
pub use origin::{Asked, Reply, TestOrigin};
pub use regions::Regions;
pub use server::HttpServer;
pub(crate) use shop::scenarios;
pub use shop::{Shop, Tiers, client, eventually};
pub use stepped::Steps;
pub use stock::{Stock, row};
pub use store::{ORIGIN_KEY, SERVICE_KEY, SESSION_KEYS, Store, app, config};
