//! Hashes in keys.

use sha2::{Digest, Sha256};

/// SHA-256 of an idempotency key together with its owner, so that the keys of two owners never collide.
pub(super) fn hash_of(owner: &str, key: &str) -> [u8; 32] {
    // Neither a token nor a user contains a brace.
    Sha256::new().chain_update(owner).chain_update("{").chain_update(key).finalize().into()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}
