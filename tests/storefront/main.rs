//! The storefront, tested on real parts: each test has a database of its own on a real Redis server, behind the real
//! gateway.
//!
//! The tree mirrors `src`. `system` holds the tests that cross module borders, `support` the test bed.

mod support;

mod carts;
mod config;
mod demo;
mod edge;
mod jobs;
mod metrics;
mod orders;
mod page_cache;
mod proxy;
mod ranking;
mod routes;
mod row_cache;
mod schema;
mod sessions;
mod system;
