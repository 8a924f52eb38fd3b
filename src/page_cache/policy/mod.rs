//! HTTP caching rules as pure functions: no I/O, no clock, no other module of edgefront.
//!
//! In reading order:
//! - [`reason`]: the reasons for a request to the origin, and the reasons not to store its response.
//! - [`cache_control`], `targeted`: the directives of `Cache-Control` and `CDN-Cache-Control`.
//! - [`freshness`]: the storable responses, and their lifetimes.
//! - [`reuse`]: the use of a stored response for a request.
//! - [`vary`]: the request headers that select a response.
//! - [`quality`]: the weights of a client's preferences.
//! - [`conditional`], [`range`]: 304 and 206 from a stored response.
//! - [`validation`]: stored headers, updated by a 304 of the origin.

pub mod cache_control;
pub mod conditional;
pub mod freshness;
pub mod quality;
pub mod range;
pub mod reason;
pub mod reuse;
mod targeted;
pub mod validation;
pub mod vary;

pub use cache_control::CacheControl;
pub use freshness::{Freshness, Heuristic};
pub use reason::{ForwardReason, Reason};
pub use reuse::{RequestDirectives, Reuse, StoredState, is_failure, is_refusal};
pub use vary::VaryFields;
