//! edgefront answers for a storefront at the edge and keeps the storefront's hot state in Redis over REST.
//!
//! The modules, in reading order:
//!
//! - [`keys`]: the whole Redis schema, one function a key.
//! - `random`: random bits.
//! - [`ids`]: the names that may become part of a key; whatever exists of these types is well formed.
//! - [`time`]: a moment and where it comes from; nothing below reads a clock by itself.
//! - [`item_routes`]: which URLs name an item.
//! - [`order`]: one sort for all types.
//! - [`network`]: where a request comes from.
//! - [`person`]: whether a person looks.
//! - [`recent`]: what happened a moment ago, in bounded space.
//! - [`config`]: every variable, read once and checked.
//! - [`fetch`]: the one way out, an HTTP request in and an HTTP response out.
//! - [`database`]: the other way out, SQL with bound parameters.
//! - [`upstash`]: Redis over REST; knows nothing of shops.
//! - [`limits`]: how often somebody may try.
//! - [`scripts`]: the Lua scripts, in one list; a test pins their hashes.
//! - [`session`]: check, touch, log in, log out.
//! - [`cart`]: set, add, remove, clear, and the merge at login.
//! - [`abandoned`]: carts that ended with their session.
//! - [`orders`]: what somebody bought, and what follows from it once.
//! - [`insights`]: bought also bought, and what those bought who viewed an item.
//! - [`seen`]: who was here, written behind the answers of many at once.
//! - [`ranking`]: count views, rank, top, rescale.
//! - [`page_cache`]: is it cacheable, under which key, serve or render, store, purge.
//! - [`row_cache`]: schedule, claim, refresh, un-schedule.
//! - [`flash_sale`]: limited pieces, each held for a visitor until it is bought or comes back.
//! - [`budget`]: what one run of the crons may spend.
//! - [`maintenance`]: the three jobs of the crons.
//! - [`stats`]: how much Redis holds.
//! - [`traffic`]: what happened, counted: where answers came from, what visitors did, what it cost.
//! - [`origin`]: the storefront behind us: any HTTP server, or the demo shop.
//! - [`journal`]: what is logged, a line of JSON each.
//! - [`assets`]: the addresses of the static files.
//! - `demo`: the built-in shop, if the feature of that name is on.
//! - [`routes`]: HTTP in, HTTP out; the dashboard's page.
//! - [`app`]: all of these put together.
//! - [`error`]: what can go wrong, by what the caller can do next.
//! - `edge`: the Worker's events; the only place that names the platform.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod abandoned;
pub mod app;
pub mod assets;
pub mod budget;
pub mod cart;
pub mod config;
pub mod database;
#[cfg(feature = "demo")]
pub mod demo;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod error;
pub mod fetch;
pub mod flash_sale;
pub mod ids;
pub mod insights;
pub mod item_routes;
pub mod journal;
pub mod keys;
pub mod limits;
pub mod maintenance;
pub mod network;
pub mod order;
pub mod orders;
pub mod origin;
pub mod page_cache;
pub mod person;
mod random;
pub mod ranking;
pub mod recent;
pub mod routes;
pub mod row_cache;
pub mod scripts;
pub mod seen;
pub mod session;
pub mod stats;
pub mod time;
pub mod traffic;
pub mod upstash;
