//! The canonical form of a page's URL, and the key made from it. Equal keys mean equal requests to the origin, because the
//! origin is asked for the canonical URL and for nothing that is not in it.

use std::{fmt::Write as _, rc::Rc};

use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::admission::Pass;
use crate::{
    config::item_routes::ItemRoutes,
    ports::sort,
    schema::{hex, ids::ItemId},
};

/// A page that may be stored, and the URL that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page(Rc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    item: Option<ItemId>,
    by_popularity: Result<(), &'static str>,
    is_exact: bool,
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
    /// [`Pass::Dynamic`] if its page is made for each request, and [`Pass::NoPage`] if it is no address of a page.
    pub fn of_url(text: &str, routes: &ItemRoutes) -> Result<Self, Pass> {
        // The parser has lower-cased scheme and host, dropped the default port and resolved the dot segments.
        let url = Url::parse(text).map_err(|_| Pass::NoPage)?;
        // What else has a host has rules of its own for paths.
        let is_http = matches!(url.scheme(), "http" | "https");
        let host = url.host_str().filter(|_| is_http).ok_or(Pass::NoPage)?;
        if url.query_pairs().any(|(name, _)| name == "_") {
            return Err(Pass::Dynamic);
        }
        let path = normalised(url.path());
        let (query, item, by_popularity) = match known_parameters(&url, &path, routes) {
            Ok((query, item)) => (query, Some(item), Ok(())),
            Err(reason) => (other_parameters(&url), routes.item(&path, url.query()), Err(reason)),
        };
        let is_exact = by_popularity.is_ok() || is_spelt(text, &path, &query);
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
        Ok(Self(Rc::new(Parts { item, by_popularity, is_exact, url: canonical, hash })))
    }

    /// The item that the page shows, if it shows one.
    #[must_use]
    pub fn item(&self) -> Option<&ItemId> {
        self.0.item.as_ref()
    }

    /// Whether its item's popularity may let it in.
    ///
    /// # Errors
    /// Why not: it names none, or its parameters leave open which page it is, and a visitor could store as many pages as there are
    /// values of them.
    pub fn by_popularity(&self) -> Result<(), &'static str> {
        self.0.by_popularity
    }

    /// Whether the origin would be asked for the very URL that it was read from, but for tracking parameters. Another spelling of
    /// it is answered from the store, and never stored: an origin may see a difference.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.0.is_exact
    }

    /// The canonical URL: what the origin is asked for, and what is stored with the page and compared.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// SHA-256 of the canonical URL, 64 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.0.hash
    }
}

/// The parameters that name the item, sorted, and the item, where nothing else is among them but tracking parameters.
fn known_parameters(url: &Url, path: &str, routes: &ItemRoutes) -> Result<(String, ItemId), &'static str> {
    let item = routes.item(path, url.query()).ok_or(NO_ITEM)?;
    let mut kept: Vec<_> = url.query_pairs().filter(|(name, _)| !is_tracking(name)).collect();
    sort::sort_by(&mut kept, Ord::cmp);
    let known = |name: &str| routes.parameters(path).any(|own| own == name);
    let twice = kept.iter().zip(kept.iter().skip(1)).any(|((one, _), (next, _))| one == next);
    if twice || kept.iter().any(|(name, _)| !known(name)) {
        return Err(PARAMETERS);
    }
    Ok((form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish(), item))
}

/// Why popularity does not let a page in, as `Cache-Status` tells it.
pub const NO_ITEM: &str = "no-item";
pub const PARAMETERS: &str = "parameters";

/// All parameters but tracking ones, in their order: to an origin that we do not know, it may mean something.
fn other_parameters(url: &Url) -> String {
    let kept = own_parts(url.query().unwrap_or_default());
    kept.map(normalised).collect::<Vec<_>>().join("&")
}

/// The parts of a query that are no tracking parameters.
fn own_parts(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|part| {
        let name = form_urlencoded::parse(part.as_bytes()).next().map(|(name, _)| name);
        name.is_none_or(|name| !is_tracking(&name))
    })
}

/// Whether a URL is spelt with this path and this query.
fn is_spelt(text: &str, path: &str, query: &str) -> bool {
    let text = text.split('#').next().unwrap_or_default();
    let (before, own) = text.split_once('?').unwrap_or((text, ""));
    let own_path = before.split_once("://").and_then(|(_, rest)| rest.get(rest.find('/')?..)).unwrap_or("/");
    own_path == path && own_parts(own).collect::<Vec<_>>().join("&") == query
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

    fn page(url: &str) -> Result<Page, Pass> {
        Page::of_url(url, &routes())
    }

    fn canonical(url: &str) -> Result<String, Pass> {
        page(url).map(|page| page.url().to_owned())
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
        let hash = |url| Page::of_url(url, &routes()).unwrap().hash().to_owned();
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
    fn popularity_does_not_let_in_what_leaves_open_which_page_it_is() {
        for (url, reason) in [
            ("https://shop.example/products/mug?x=1", PARAMETERS),
            ("https://shop.example/products/mug?item=cup", PARAMETERS),
            ("https://shop.example/?item=mug&sku=a&sku=a", PARAMETERS),
            ("https://shop.example/?item=mug&item=cup", NO_ITEM),
            ("https://shop.example/about", NO_ITEM),
            ("https://shop.example/?item=", NO_ITEM),
        ] {
            assert_eq!(page(url).unwrap().by_popularity(), Err(reason), "{url}");
        }
        assert_eq!(page("https://shop.example/products/mug?x=1").unwrap().item().unwrap().as_str(), "mug");
    }

    #[test]
    fn what_is_made_for_each_request_is_no_page() {
        for (url, reason) in [
            ("https://shop.example/?item=mug&_=1", Pass::Dynamic),
            ("https://shop.example/products/mug?_", Pass::Dynamic),
            ("https://shop.example/about?%5F=1", Pass::Dynamic),
            ("/products/mug", Pass::NoPage),
            ("data:mug", Pass::NoPage),
            ("gopher://shop.example?item=mug", Pass::NoPage),
        ] {
            assert_eq!(canonical(url), Err(reason), "{url}");
        }
    }

    #[test]
    fn a_page_that_no_rule_of_ours_knows_keeps_its_parameters_as_they_are() {
        for (url, same, is_exact) in [
            ("https://shop.example/about", "https://shop.example/about", true),
            ("https://shop.example/s?b=2&a=1&b=1", "https://shop.example/s?b=2&a=1&b=1", true),
            ("https://shop.example/s?q=a+b&&x", "https://shop.example/s?q=a+b&&x", true),
            ("https://shop.example/s?utm_source=m&q=1&gclid=2", "https://shop.example/s?q=1", true),
            ("https://shop.example/s?utm_source=m", "https://shop.example/s", true),
            ("https://shop.example/s?", "https://shop.example/s", true),
            ("https://shop.example/s?%75tm_x=1&q=%2f%61", "https://shop.example/s?q=%2Fa", false),
            ("https://shop.example/a%2fb", "https://shop.example/a%2Fb", false),
            ("https://shop.example/x/../y", "https://shop.example/y", false),
        ] {
            let page = page(url).unwrap();
            assert_eq!((page.url(), page.is_exact()), (same, is_exact), "{url}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_of_a_canonical_url_is_itself(
            path in "/(products|a%2[fF]b|x|\\.\\.)?/?([a-z%/.0-9]|%[0-9a-fA-F]{2}){0,8}(/view)?",
            query in "((item|sku|q|utm_x|gclid)=([a-z%+]|%[0-9a-f]{2}){0,4}&?){0,3}",
        ) {
            if let Ok(once) = page(&format!("https://shop.example{path}?{query}")) {
                let again = page(once.url()).unwrap();
                prop_assert_eq!((again.url(), again.item(), again.is_exact()), (once.url(), once.item(), true));
            }
        }

        #[test]
        fn any_path_is_normalised_once(path in "([a-zA-Z0-9%/~]|%[0-9a-fA-F]{2}){0,20}") {
            let once = normalised(&path);
            prop_assert_eq!(normalised(&once), once);
        }
    }
}
