//! Style, script and icon. A page names them with their version (a hash of the content), and what is asked for by its present
//! version may be kept for ever.

use std::fmt;

use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

use crate::fetch::{Body, Response};

/// A file that is compiled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asset {
    path: &'static str,
    media_type: HeaderValue,
    content: &'static str,
    version: u32,
}

pub(super) static STYLE: Asset =
    Asset::new("/assets/shop.css", "text/css; charset=utf-8", include_str!("assets/shop.css"));
pub(super) static SCRIPT: Asset =
    Asset::new("/assets/shop.js", "text/javascript; charset=utf-8", include_str!("assets/shop.js"));
pub(super) static ICON: Asset = Asset::new("/assets/icon.svg", "image/svg+xml", include_str!("assets/icon.svg"));

impl Asset {
    const fn new(path: &'static str, media_type: &'static str, content: &'static str) -> Self {
        Self { path, media_type: HeaderValue::from_static(media_type), content, version: fnv1a(content.as_bytes()) }
    }

    /// The asset at `path`, if there is one.
    pub(super) fn at(path: &str) -> Option<&'static Self> {
        [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path == path)
    }

    /// The file. Under another version's address it is kept for a minute only: a page from before an update must not pin
    /// the new file to the old address.
    pub(super) fn response(&self, query: Option<&str>) -> Response {
        let is_present = query == self.to_string().split_once('?').map(|(_, version)| version);
        let kept = if is_present { "public, max-age=31536000, immutable" } else { "public, max-age=60" };
        let mut response = Response::new(Body::from(self.content));
        response.headers_mut().insert(CONTENT_TYPE, self.media_type.clone());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(kept));
        response
    }
}

/// The address that a page names.
impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?v={:08x}", self.path, self.version)
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
    fn only_the_present_version_is_kept_for_ever() {
        let address = STYLE.to_string();
        let (path, version) = address.split_once('?').unwrap();
        let asset = Asset::at(path).unwrap();
        let kept = |query| asset.response(query).headers().get(CACHE_CONTROL).unwrap().clone();
        assert_eq!(kept(Some(version)), "public, max-age=31536000, immutable");
        for other in [None, Some("v=0"), Some("")] {
            assert_eq!(kept(other), "public, max-age=60");
        }
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }
}
