//! The page cache: a shared HTTP cache (RFC 9111) in front of the origin, for pages whose freshness the origin states, and for pages of
//! popular items where it says nothing. Whatever is served from here was asked for without cookies or identity, and is the very
//! page that its canonical URL names.
//!
//! - [`admission`]: which requests may be answered from here, and why the others not.
//! - [`key`]: the canonical URL and its hash; [`vary`]: and the request's headers, where one URL has several pages.
//! - [`lookup`]: rank, page and lease in one script; [`reuse`]: whether what is stored is the answer.
//! - [`render`](self): ask the origin, keep the answer whole; [`validation`]: or hear that what is stored still holds.
//! - [`storable`]: what may be stored, and for how long; [`cache_control`], `targeted`: what the origin says of that.
//! - [`store`](self), [`purge`](self): the scripts that end a render, make room and void pages.
//! - [`serve`](self): a stored page as an answer; [`conditional`]: or as a 304; [`range`]: or a part of it.
//! - [`entry`], [`cache_status`]: the formats.
//! - [`memory`]: what this isolate remembers.
//! - [`explain`](self): what would be done for a URL, and why.
//!
//! A page has four ages. Fresh: it is served. Stale: it is served, and the one request that got the lease renders it behind its
//! answer. Kept: the one with the lease asks the origin whether it still holds, and the others wait for what it says. Gone: the
//! same, without anything to fall back to.

pub mod admission;
pub mod cache_control;
pub mod cache_status;
pub mod conditional;
pub mod entry;
pub mod key;
pub mod lookup;
pub mod memory;
pub mod range;
pub mod reuse;
pub mod storable;
pub mod validation;
pub mod vary;

mod explain;
mod purge;
mod render;
mod serve;
mod store;
mod targeted;

pub use admission::{Pass, admit};
pub use cache_status::CacheStatus;
pub use entry::Entry;
pub use explain::{Explanation, Named, Stored, explain};
pub use key::Page;
pub use lookup::{Ask, Lease, Look, Lookup, State, look, ping};
pub use memory::{Asked, Hot, Memory, Waiting};
pub use purge::{Extent, Purge, purge};
pub use render::{Order, Rendered, render};
pub use reuse::{Reuse, Wish};
pub use serve::{is_for_all, serve, serve_kept};
pub use store::{give_back, invalidate, note_unstorable, store};
pub use vary::Selecting;
