//! The canonical form of a page's URL, and the key made from it. Equal keys mean equal requests to the origin, because the
//! origin is asked for the canonical URL and for nothing that is not in it.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::admission::Pass;
use crate::{ids::ItemId, item_routes::ItemRoutes, keys::hex};

/// A page that may be stored: the item it shows, and the URL that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    item: ItemId,
    url: String,
    hash: String,
}

/// Parameters that say where a visitor came from. They do not change the page, so they do not make another one.
const TRACKING: [&str; 14] = [
    "_ga", "_gl", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igshid", "mc_cid", "mc_eid", "msclkid", "ttclid",
    "wbraid", "yclid",
];

impl Page {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// The reason why no page is stored under it: it names no item, or its parameters leave open which page it is.
    pub fn of_url(url: &str, routes: &ItemRoutes) -> Result<Self, Pass> {
        // The parser has lower-cased scheme and host, dropped the default port and resolved the dot segments.
        let url = Url::parse(url).map_err(|_| Pass::NoItem)?;
        let path = normalised(url.path());
        let query = parameters(&url, &path, routes)?;
        let item = routes.item(&path, Some(&query)).ok_or(Pass::NoItem)?;
        let host = url.host_str().ok_or(Pass::NoItem)?;
        let mut canonical = format!("{}://{host}", url.scheme());
        if let Some(port) = url.port() {
            let _ = write!(canonical, ":{port}");
        }
        canonical.push_str(&path);
        if !query.is_empty() {
            canonical.push('?');
            canonical.push_str(&query);
        }
        let hash = hex(&Sha256::digest(&canonical));
        Ok(Self { item, url: canonical, hash })
    }

    /// The item that the page shows.
    #[must_use]
    pub const fn item(&self) -> &ItemId {
        &self.item
    }

    /// The canonical URL: what the origin is asked for, and what is stored with the page and compared.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// SHA-256 of the canonical URL, 64 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// The parameters that name the item, sorted. Tracking parameters are dropped; a parameter that is given twice or is not
/// known could be any page's, and a visitor could store as many pages as there are values of it.
fn parameters(url: &Url, path: &str, routes: &ItemRoutes) -> Result<String, Pass> {
    let mut kept: Vec<_> = url.query_pairs().filter(|(name, _)| !is_tracking(name)).collect();
    kept.sort();
    if kept.iter().any(|(name, _)| name == "_") {
        return Err(Pass::Dynamic);
    }
    let known = |name: &str| routes.parameters(path).any(|own| own == name);
    let twice = kept.iter().zip(kept.iter().skip(1)).any(|((one, _), (next, _))| one == next);
    if twice || kept.iter().any(|(name, _)| !known(name)) {
        return Err(Pass::Parameters);
    }
    Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish())
}

fn is_tracking(name: &str) -> bool {
    name.starts_with("utm_") || TRACKING.contains(&name)
}

/// `path` with one spelling for each character (RFC 3986 §6.2.2): unreserved ones plain, all others `%XX` in upper case. A
/// `%` that begins no such triplet is one itself.
fn normalised(path: &str) -> String {
    let mut parts = path.split('%');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (character, rest) = match byte {
            Some(byte) => (byte, part.get(2..).unwrap_or_default()),
            None => (b'%', part),
        };
        if character.is_ascii_alphanumeric() || b"-._~".contains(&character) {
            result.push(char::from(character));
        } else {
            let _ = write!(result, "%{character:02X}");
        }
        result.push_str(rest);
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn routes() -> ItemRoutes {
        ItemRoutes::parse("/?item={item}, /products/{item}, /a%2Fb/{item}/view, /?sku={item}").unwrap()
    }

    fn canonical(url: &str) -> Result<String, Pass> {
        Page::of_url(url, &routes()).map(|page| page.url)
    }

    #[test]
    fn spellings_of_one_url_are_one_page() {
        for (url, same) in [
            ("HTTPS://Shop.Example:443/products/mug", "https://shop.example/products/mug"),
            ("https://shop.example/x/../products/./m%75g?", "https://shop.example/products/mug"),
            ("https://shop.example/products/%2e%2e/products/mug#top", "https://shop.example/products/mug"),
            ("https://shop.example/products/mug?utm_source=a&gclid=1", "https://shop.example/products/mug"),
            ("https://shop.example/?fbclid=1&item=m%75g", "https://shop.example/?item=mug"),
            ("https://shop.example/?sku=b&item=a", "https://shop.example/?item=a&sku=b"),
            ("http://shop.example:8080/a%2fb/mug/view", "http://shop.example:8080/a%2Fb/mug/view"),
        ] {
            assert_eq!(canonical(url).as_deref(), Ok(same), "{url}");
        }
    }

    // D12: `Aa` and `BB` have the same 32-bit string hash in the book's ports.
    #[test]
    fn different_pages_have_different_keys() {
        let hash = |url| Page::of_url(url, &routes()).unwrap().hash;
        let urls = [
            "https://shop.example/?item=Aa",
            "https://shop.example/?item=BB",
            "https://shop.example/products/Aa",
            "http://shop.example/products/Aa",
            "https://shop.example:444/products/Aa",
            "https://other.example/products/Aa",
        ];
        let hashes: std::collections::HashSet<_> = urls.into_iter().map(hash).collect();
        assert_eq!(hashes.len(), urls.len());
        assert!(hashes.iter().all(|hash| hash.len() == 64));
    }

    // D13
    #[test]
    fn what_leaves_open_which_page_it_is_has_no_key() {
        for (url, reason) in [
            ("https://shop.example/products/mug?x=1", Pass::Parameters),
            ("https://shop.example/products/mug?item=cup", Pass::Parameters),
            ("https://shop.example/?item=mug&item=mug", Pass::Parameters),
            ("https://shop.example/?item=mug&item=cup", Pass::Parameters),
            ("https://shop.example/?item=mug&_=1", Pass::Dynamic),
            ("https://shop.example/products/mug?_", Pass::Dynamic),
            ("https://shop.example/about", Pass::NoItem),
            ("https://shop.example/?item=", Pass::NoItem),
            ("/products/mug", Pass::NoItem),
            ("data:mug", Pass::NoItem),
        ] {
            assert_eq!(canonical(url), Err(reason), "{url}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_of_a_canonical_url_is_itself(
            path in "/(products|a%2[fF]b|x|\\.\\.)?/?([a-z%/.0-9]|%[0-9a-fA-F]{2}){0,8}(/view)?",
            query in "((item|sku|utm_x|gclid)=([a-z%+]|%[0-9a-f]{2}){0,4}&?){0,3}",
        ) {
            if let Ok(once) = canonical(&format!("https://shop.example{path}?{query}")) {
                prop_assert_eq!(canonical(&once), Ok(once));
            }
        }

        #[test]
        fn any_path_is_normalised_once(path in "([a-zA-Z0-9%/~]|%[0-9a-fA-F]{2}){0,20}") {
            let once = normalised(&path);
            prop_assert_eq!(normalised(&once), once);
        }
    }
}
