//! The storefront, tested on real parts: each test has its own database of a real Redis server, behind the real gateway.
//! The tree mirrors `src`.

mod support;

/// `/_edge/v1`.
mod api;
/// What the other tests stand on.
mod store;
