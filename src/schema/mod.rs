//! The Redis schema: every key, every id that may become part of a key, and every script.

mod hash;

pub mod ids;
pub mod keys;
pub mod redis;
pub mod scripts;
pub mod shard;
pub mod token;

pub(crate) use hash::hex;
