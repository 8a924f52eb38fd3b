//! The URLs of the static files in `assets/`. The platform serves them (Workers static assets) without running the
//! Worker.
//!
//! They are below `/_edge/`, so they cannot collide with a path of the origin. A URL carries the file's version, a hash
//! of its content and of the files that the build bundles into it. Browsers may therefore cache it forever
//! (`assets/_headers`).

use std::fmt;

/// A static file; displays as its URL.
pub struct Asset {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
}

/// A file in `assets/`, followed by the files that the build bundles into it: their paths relative to `assets/`, and
/// `package-lock.json` for libraries. Only their hash is compiled in.
macro_rules! asset {
    ($name:literal $(, $part:literal)* $(,)?) => {
        $crate::ports::assets::Asset {
            name: $name,
            version: $crate::ports::assets::fnv1a(&[
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/", $name)),
                $(include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/", $part))),*
            ]),
        }
    };
}
pub(crate) use asset;

/// The icon of all pages.
pub const ICON: Asset = asset!("icon.svg");

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/_edge/assets/{}?v={:08x}", self.name, self.version)
    }
}

/// FNV-1a, 32 bits (RFC 9923), over the concatenated files: a version number, not a protection.
pub(crate) const fn fnv1a(mut files: &[&[u8]]) -> u32 {
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
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(&[]), 0x811c_9dc5);
        assert_eq!(fnv1a(&[b"a"]), 0xe40c_292c);
        assert_eq!(fnv1a(&[b"foo", b"", b"bar"]), 0xbf9c_f968);
    }

    fn read(path: &str) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// The files that `name` imports, directly and indirectly: their paths relative to `assets/`, and
    /// `package-lock.json` for a library. A package in `integrations/` has one file.
    fn imported(name: &str, found: &mut BTreeSet<String>) {
        // A picture is no text and imports nothing.
        let Ok(text) = fs::read_to_string(format!("assets/{name}")) else { return };
        let imports = text.lines().filter(|line| line.starts_with("import ") || line.starts_with("@import "));
        for path in imports.filter_map(|line| line.rsplit(['\'', '"']).nth(1)) {
            let folder = name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let path = match (path.strip_prefix("./"), path.strip_prefix("../../")) {
                (Some(path), _) => folder + path,
                (None, Some(package)) => format!("../{package}"),
                (None, None) => "../package-lock.json".to_owned(),
            };
            if found.insert(path.clone()) && !path.starts_with("../") {
                imported(&path, found);
            }
        }
    }

    /// Otherwise a browser would keep an outdated file.
    #[test]
    fn every_bundled_file_counts_for_the_version() {
        for code in ["src/demo/assets.rs", "src/routes/dashboard.rs"] {
            let code = read(code);
            let lists = code.split("asset!(").skip(1).filter_map(|rest| rest.split(");").next());
            for list in lists {
                let mut files = list.split('"').skip(1).step_by(2).map(str::to_owned);
                let name = files.next().unwrap();
                let mut parts = BTreeSet::new();
                imported(&name, &mut parts);
                assert_eq!(files.collect::<BTreeSet<_>>(), parts, "{name}");
            }
        }
    }
}
