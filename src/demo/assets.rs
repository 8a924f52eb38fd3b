//! The addresses of the static files in `assets/`. The platform serves them (Workers static assets), before the Worker is even asked.
//!
//! Under `/_edge/`, which is ours: no path of a storefront behind us can collide with them. An address carries the file's version (a
//! hash of its content), so that browsers may keep what they have for ever (`assets/_headers`).

use std::fmt;

/// A static file; displays as its address.
pub(super) struct Asset {
    name: &'static str,
    version: u32,
}

/// The file of that name in `assets/`; only its hash is compiled in.
macro_rules! asset {
    ($name:literal) => {
        Asset { name: $name, version: fnv1a(include_bytes!(concat!("../../assets/", $name))) }
    };
}

pub(super) const STYLE: Asset = asset!("shop.css");
pub(super) const SCRIPT: Asset = asset!("shop.js");
pub(super) const ICON: Asset = asset!("icon.svg");

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/_edge/assets/{}?v={:08x}", self.name, self.version)
    }
}

/// FNV-1a, 32 bits (RFC 9923): tells versions of one file apart at compile time; it protects nothing.
const fn fnv1a(mut bytes: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    while let [first, rest @ ..] = bytes {
        hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
        bytes = rest;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }
}
