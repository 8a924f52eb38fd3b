//! A simulation of edgefront from ten to a million requests a second, which runs the product's own policy code: the
//! freshness of pages, the decisions of the page cache, the isolate's memory, the batches of activity, the traffic
//! counters and the circuit breaker. `cargo xtask simulate` runs it.
//!
//! - [`scenario`]: the traffic, the shop, the platform and the tiers.
//! - [`world`]: the events. [`visitor`], [`isolate`], [`location`], [`redis`], [`origin`]: its parts.
//! - [`virtual_time`], [`rest`]: the product's background tasks in virtual time, and their way to Redis.
//! - [`cities`], [`catalogue`], [`ranking`]: distances and popularity.
//! - [`costs`]: the commands of each step. [`usage`], [`tally`], [`histogram`]: what is counted. [`numbers`]: conversions.
//! - [`summary`], [`report`], [`plot`], [`saturation`], [`document`]: the result.

pub mod catalogue;
pub mod cities;
pub mod costs;
pub mod document;
pub mod histogram;
pub mod isolate;
pub mod location;
pub mod numbers;
pub mod origin;
pub mod plot;
pub mod ranking;
pub mod redis;
pub mod report;
pub mod rest;
pub mod saturation;
pub mod scenario;
pub mod shared;
pub mod summary;
pub mod tally;
pub mod usage;
pub mod virtual_time;
pub mod visitor;
pub mod world;
