//! The interfaces to the platform, and helpers that know nothing about shops. `edge` implements the traits in a Worker,
//! the tests implement them natively.

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
