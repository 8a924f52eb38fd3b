//! The lowest layer: the interfaces to the platform, and helpers that several layers need and that know nothing about
//! shops. `edge` implements the traits in a Worker, the tests implement them natively.
//!
//! Interfaces:
//! - [`fetch`], [`home`], [`answer`], [`held`]: HTTP, the home tier, a response with its background tasks, bytes outside of
//!   wasm.
//! - [`database`], [`location_cache`], [`html`], [`mail`], [`assets`]: SQL, the location's cache, the HTML parser, mail,
//!   static files.
//! - [`time`], [`random`](self), [`executor`], [`rate_limit`]: the clock, random bits, futures, rate limits.
//!
//! Helpers:
//! - [`error`], [`problem`]: the error of the domain, and its document for clients.
//! - [`budget`], [`circuit_breaker`], [`semaphore`], [`writer_lease`]: bounds on time, requests, waits, memory and writers.
//! - [`histogram`], [`recent`], [`sort`], [`network`], [`header_names`]: durations, recent events, sorting, the client's
//!   network, headers.

pub mod answer;
pub mod assets;
pub mod budget;
pub mod circuit_breaker;
pub mod database;
pub mod error;
pub mod executor;
pub mod fetch;
pub mod header_names;
pub mod held;
pub mod histogram;
pub mod home;
pub mod html;
pub mod location_cache;
pub mod mail;
pub mod network;
pub mod problem;
pub(crate) mod random;
pub mod rate_limit;
pub mod recent;
pub mod semaphore;
pub mod sort;
pub mod time;
pub mod writer_lease;
