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

/// The file of that name in `assets/`, with those that the build puts into it; only their hash is compiled in.
macro_rules! asset {
    ($name:literal $(, $part:literal)*) => {
        Asset {
            name: $name,
            version: fnv1a(&[
                include_bytes!(concat!("../../assets/", $name)),
                $(include_bytes!(concat!("../../assets/shop/", $part))),*
            ]),
        }
    };
}

pub(super) const STYLE: Asset = asset!(
    "shop.css",
    "base.css",
    "controls.css",
    "frame.css",
    "pictures.css",
    "cards.css",
    "home.css",
    "product.css",
    "forms.css",
    "cart.css",
    "flash.css"
);
pub(super) const SCRIPT: Asset = asset!(
    "shop.js",
    "api.js",
    "page.js",
    "visitor.js",
    "popular.js",
    "product.js",
    "suggestions.js",
    "cart.js",
    "account.js",
    "flash.js"
);
/// Every product's drawing, by its name as the fragment.
pub(super) const PICTURES: Asset = asset!("pictures.svg");
pub(super) const ICON: Asset = asset!("icon.svg");

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/_edge/assets/{}?v={:08x}", self.name, self.version)
    }
}

/// FNV-1a, 32 bits (RFC 9923), of the files one after the other: tells versions apart at compile time; it protects nothing.
const fn fnv1a(mut files: &[&[u8]]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    while let [file, others @ ..] = files {
        let mut bytes = *file;
        while let [first, rest @ ..] = bytes {
            hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
            bytes = rest;
        }
        files = others;
    }
    hash
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(&[]), 0x811c_9dc5);
        assert_eq!(fnv1a(&[b"a"]), 0xe40c_292c);
        assert_eq!(fnv1a(&[b"foo", b"bar"]), 0xbf9c_f968);
    }

    /// Else a browser would keep what has changed.
    #[test]
    fn whatever_is_bundled_counts_for_the_version() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let code = fs::read_to_string(here.join("src/demo/assets.rs")).unwrap();
        for part in fs::read_dir(here.join("assets/shop")).unwrap() {
            let name = part.unwrap().file_name().into_string().unwrap();
            assert!(code.contains(&format!("\"{name}\"")), "{name} is missing here");
        }
    }

    #[test]
    fn the_pictures_have_a_name_each_and_draw_in_the_tones_of_the_style() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pictures = fs::read_to_string(here.join("assets/pictures.svg")).unwrap();
        let names: Vec<_> = pictures.split("<symbol id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
        for used in pictures.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(["--tone", "--tone-dark", "--tone-light"].contains(&used), "{used}");
        }
    }
}
