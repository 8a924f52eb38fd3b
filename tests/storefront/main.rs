//! The storefront, tested on real parts: each test has its own database of a real Redis server, behind the real gateway.
//! The tree mirrors `src`.

mod support;

/// `/_edge/v1`.
mod api;
/// Quantities and who may change them.
mod cart;
/// Pages of popular items.
mod page_cache;
/// The storefront behind us.
mod proxy;
/// The cleaning of sessions.
mod reap;
/// The Lua scripts as a whole.
mod scripts;
/// Login tokens.
mod session;
/// What the other tests stand on.
mod store;
/// Redis over REST.
mod upstash;
