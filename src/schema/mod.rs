//! The Redis schema. `docs/redis.md` describes it.
//!
//! - [`families`]: the table of all keys, with their content.
//! - [`keys`], [`shard`]: the functions that make keys.
//! - [`ids`], [`token`]: the parts of keys that come from outside.
//! - [`scripts`]: the Lua scripts.
//! - [`carry_over`]: moves the shared keys to other names. Not a part of the Worker.

mod hash;

#[cfg(not(target_arch = "wasm32"))]
pub mod carry_over;
pub mod families;
pub mod ids;
pub mod keys;
pub mod redis;
pub mod scripts;
pub mod shard;
pub mod token;

pub(crate) use hash::hex;
