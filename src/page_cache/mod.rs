//! Pages of popular items, stored as the origin sent them. Whatever is served from here was a plain 200 that RFC 9111 lets a
//! shared cache keep, was asked for without cookies or identity, and is the very page that its canonical URL names.
//!
//! - [`admission`]: which requests may be answered from here, and why the others not.
//! - [`key`]: the canonical URL and its hash.
//! - [`lookup`]: rank, page and lease in one script.
//! - [`render`](self): ask the origin, keep the answer whole.
//! - [`storable`]: what may be stored, and for how long.
//! - [`store`](self), [`purge`](self): the two scripts that end a render and void pages.
//! - [`serve`](self): a stored page as an answer; [`conditional`]: or as a 304.
//! - [`entry`], [`cache_control`], [`cache_status`]: the formats.
//! - [`explain`](self): what would be done for a URL, and why.
//!
//! A page has three ages. Fresh: it is served. Stale: it is served, and the one request that got the lease renders it behind
//! its answer. Gone: whoever asks waits for the origin, and the one with the lease stores what came.

pub mod admission;
pub mod cache_control;
pub mod cache_status;
pub mod conditional;
pub mod entry;
pub mod key;
pub mod lookup;
pub mod storable;

mod explain;
mod purge;
mod render;
mod serve;
mod store;

pub use admission::{Pass, admit};
pub use cache_status::CacheStatus;
pub use entry::Entry;
pub use explain::{Explanation, Named, Stored, explain};
pub use key::Page;
pub use lookup::{Lease, Look, Lookup, PAGE};
pub use purge::{PURGE, Purge, purge};
pub use render::{Rendered, render};
pub use serve::serve;
pub use store::{STORE, give_back, store};
