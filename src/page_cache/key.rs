//! The key of a page: its canonical URL and the URL's hash. Equal keys mean equal requests to the origin, because the
//! origin is asked for the canonical URL.

use std::{fmt::Write as _, rc::Rc};

use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::policy::{Reason, freshness::Popularity};
use crate::{
    config::{
        item_routes::ItemRoutes,
        rules::{QueryRules, UrlRules},
    },
    ports::sort,
    schema::{hex, ids::ItemId},
};

/// The identity of a page that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageKey {
    parts: Rc<Parts>,
    /// The item that the origin named, if it is not the URL's.
    named: Option<ItemId>,
}

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    item: Option<ItemId>,
    by_popularity: Popularity,
    is_at_shared_path: bool,
    is_exact: bool,
    url: String,
    hash: String,
}

impl PageKey {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// [`Reason::Dynamic`] for a page that is made for one request, [`Reason::Path`] for a URL of `PATHS_PERSONAL` or `CHOICES`,
    /// [`Reason::NoPage`] for anything but an absolute HTTP URL.
    pub fn of_url(text: &str, rules: &UrlRules) -> Result<Self, Reason> {
        let UrlRules { items: routes, query: query_rules, .. } = rules;
        // The parser lower-cases scheme and host, drops the default port and resolves dot segments.
        let url = Url::parse(text).map_err(|_| Reason::NoPage)?;
        let is_http = matches!(url.scheme(), "http" | "https");
        let host = url.host_str().filter(|_| is_http).ok_or(Reason::NoPage)?;
        if url.query_pairs().any(|(name, _)| name == "_") {
            return Err(Reason::Dynamic);
        }
        let path = normalized(url.path());
        if rules.personal_paths.contains(&path) || rules.choices.contains(&path, url.query()) {
            return Err(Reason::Path);
        }
        let (query, item, by_popularity) = match known_parameters(&url, &path, routes, query_rules) {
            Ok((query, item)) => (query, Some(item), Ok(())),
            Err(reason) => (other_parameters(&url, query_rules), routes.item(&path, url.query()), Err(reason)),
        };
        let are_kept = || form_urlencoded::parse(query.as_bytes()).all(|(name, _)| query_rules.kept.contains(&name));
        let is_at_shared_path = rules.shared_paths.contains_exactly(&path) && (by_popularity.is_ok() || are_kept());
        let is_exact = by_popularity.is_ok() || is_exact(text, &path, &query, query_rules);
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
        Ok(Self {
            parts: Rc::new(Parts { item, by_popularity, is_at_shared_path, is_exact, url: canonical, hash }),
            named: None,
        })
    }

    /// The same page with the item that the origin named for it (`Edge-Item`). None: the URL alone names the item.
    #[must_use]
    pub fn naming(&self, item: Option<&ItemId>) -> Self {
        let named = item.filter(|item| self.parts.item.as_ref() != Some(item)).cloned();
        Self { parts: self.parts.clone(), named }
    }

    /// The item that the origin named, if it is not the URL's.
    #[must_use]
    pub const fn named(&self) -> Option<&ItemId> {
        self.named.as_ref()
    }

    /// The item on the page, if the origin or the URL names one. The origin wins.
    #[must_use]
    pub fn item(&self) -> Option<&ItemId> {
        self.named.as_ref().or(self.parts.item.as_ref())
    }

    /// Returns whether the item's popularity may admit the page.
    ///
    /// # Errors
    /// [`Reason::NoItem`], or [`Reason::Parameters`]: a visitor could store one page for each value of an unknown
    /// parameter.
    pub fn by_popularity(&self) -> Popularity {
        match (self.parts.by_popularity, &self.named) {
            (Err(Reason::NoItem), Some(_)) if self.url().contains('?') => Err(Reason::Parameters),
            (Err(Reason::NoItem), Some(_)) => Ok(()),
            (by_url, _) => by_url,
        }
    }

    /// Returns whether `PATHS_SHARED` names the page. A parameter that no rule names prevents it: a visitor could store one
    /// page for each value.
    #[must_use]
    pub fn is_at_shared_path(&self) -> bool {
        self.parts.is_at_shared_path
    }

    /// Returns whether the URL was already canonical, apart from ignored parameters. Another spelling is answered from
    /// the store but never stored, because the origin may see a difference.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.parts.is_exact
    }

    /// The canonical URL. It is sent to the origin, stored with the page, and compared on each lookup.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.parts.url
    }

    /// The path of the canonical URL.
    #[must_use]
    pub fn path(&self) -> &str {
        path_of(self.url())
    }

    /// Path and query of the canonical URL.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        path_and_query_of(self.url())
    }

    /// SHA-256 of the canonical URL, 64 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.parts.hash
    }
}

/// The sorted query and the item of a URL that has only item parameters and ignored parameters.
fn known_parameters(
    url: &Url,
    path: &str,
    routes: &ItemRoutes,
    rules: &QueryRules,
) -> Result<(String, ItemId), Reason> {
    let item = routes.item(path, url.query()).ok_or(Reason::NoItem)?;
    let mut kept: Vec<_> = url.query_pairs().filter(|(name, _)| rules.is_part_of_key(name)).collect();
    sort::sort_by(&mut kept, Ord::cmp);
    let known = |name: &str| routes.parameters(path).any(|own| own == name);
    let twice = kept.iter().zip(kept.iter().skip(1)).any(|((one, _), (next, _))| one == next);
    if twice || kept.iter().any(|(name, _)| !known(name)) {
        return Err(Reason::Parameters);
    }
    Ok((form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish(), item))
}

/// All parameters except ignored ones. They keep their order, because it may matter to the origin.
fn other_parameters(url: &Url, rules: &QueryRules) -> String {
    let kept = kept_parts(url.query().unwrap_or_default(), rules);
    kept.map(normalized).collect::<Vec<_>>().join("&")
}

/// The parts of a query without ignored parameters.
fn kept_parts<'a>(query: &'a str, rules: &'a QueryRules) -> impl Iterator<Item = &'a str> {
    query.split('&').filter(move |part| {
        let name = form_urlencoded::parse(part.as_bytes()).next().map(|(name, _)| name);
        name.is_none_or(|name| rules.is_part_of_key(&name))
    })
}

/// The path of an absolute URL.
fn path_of(url: &str) -> &str {
    path_and_query_of(url).split('?').next().unwrap_or_default()
}

fn path_and_query_of(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "/" };
    // A query may contain `/`.
    rest.find(['/', '?']).and_then(|at| rest.get(at..)).filter(|rest| rest.starts_with('/')).unwrap_or("/")
}

/// Returns whether a URL has exactly this path and this query.
fn is_exact(text: &str, path: &str, query: &str, rules: &QueryRules) -> bool {
    let text = text.split('#').next().unwrap_or_default();
    let own = text.split_once('?').map_or("", |(_, query)| query);
    path_of(text) == path && kept_parts(own, rules).collect::<Vec<_>>().join("&") == query
}

/// Normalizes percent-encoding (RFC 3986 §6.2.2): unreserved characters are plain, all others `%XX` in upper case. A
/// `%` without two hexadecimal digits becomes `%25`.
fn normalized(path: &str) -> String {
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
    use crate::config::rules::{PathPatterns, Patterns};

    fn rules() -> UrlRules {
        UrlRules {
            items: ItemRoutes::parse("/?item={item}, /products/{item}, /a%2Fb/{item}/view, /?sku={item}").unwrap(),
            personal_paths: PathPatterns::parse("/admin/*, /checkout").unwrap(),
            shared_paths: PathPatterns::parse("/, /shoes/*, /admin/*").unwrap(),
            query: QueryRules { kept: Patterns::parse("page, f[]").unwrap(), ..QueryRules::default() },
            ..UrlRules::default()
        }
    }

    fn page(url: &str) -> Result<PageKey, Reason> {
        PageKey::of_url(url, &rules())
    }

    fn canonical(url: &str) -> Result<String, Reason> {
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

    #[test]
    fn a_personal_path_has_no_shared_page_however_it_is_spelled() {
        for path in ["/admin/", "/admin/orders?x=1", "//admin/x", "/a/../admin/x", "/%61dmin%2fx", "/checkout"] {
            assert_eq!(page(&format!("https://shop.example{path}")), Err(Reason::Path), "{path}");
        }
        assert!(page("https://shop.example/administrators").is_ok());
    }

    // D12: `Aa` and `BB` have the same 32-bit string hash in the book's ports.
    #[test]
    fn different_pages_have_different_keys() {
        let hash = |url| PageKey::of_url(url, &rules()).unwrap().hash().to_owned();
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
    fn unknown_parameters_keep_popularity_from_admitting_a_page() {
        for (url, reason) in [
            ("https://shop.example/products/mug?x=1", Reason::Parameters),
            ("https://shop.example/products/mug?item=cup", Reason::Parameters),
            ("https://shop.example/?item=mug&sku=a&sku=a", Reason::Parameters),
            ("https://shop.example/?item=mug&item=cup", Reason::NoItem),
            ("https://shop.example/about", Reason::NoItem),
            ("https://shop.example/?item=", Reason::NoItem),
        ] {
            assert_eq!(page(url).unwrap().by_popularity(), Err(reason), "{url}");
        }
        assert_eq!(page("https://shop.example/products/mug?x=1").unwrap().item().unwrap().as_str(), "mug");
    }

    #[test]
    fn a_shared_path_has_only_known_parameters() {
        for (path, expected) in [
            ("/", true),
            ("/?item=mug", true),
            ("/?item=mug&x=1", false),
            ("/shoes/red", true),
            ("/shoes/red?page=2&utm_source=mail", true),
            ("/shoes/red?p%61ge=2", true),
            ("/shoes/red?page=2&sort=price", false),
            ("/shoes/red?f%5B%5D=2&page=1", true),
            ("/shoes", false),
        ] {
            assert_eq!(page(&format!("https://shop.example{path}")).unwrap().is_at_shared_path(), expected, "{path}");
        }
        assert_eq!(page("https://shop.example/admin/"), Err(Reason::Path), "a personal path wins");
    }

    #[test]
    fn the_origin_may_name_the_item_of_any_page() {
        let [mug, pan] = ["mug", "pan"].map(|item| ItemId::parse(item).unwrap());
        for (url, item, by_popularity) in [
            ("https://shop.example/catalogue/enamel-mug_23/", "mug", Ok(())),
            ("https://shop.example/catalogue/enamel-mug_23/?utm_source=mail", "mug", Ok(())),
            ("https://shop.example/catalogue/enamel-mug_23/?x=1", "mug", Err(Reason::Parameters)),
            ("https://shop.example/?item=a&item=b", "mug", Err(Reason::Parameters)),
            ("https://shop.example/products/pan", "mug", Ok(())),
            ("https://shop.example/products/pan?x=1", "mug", Err(Reason::Parameters)),
        ] {
            let key = page(url).unwrap();
            let named = key.naming(Some(&mug));
            assert_eq!((named.item().unwrap().as_str(), named.by_popularity()), (item, by_popularity), "{url}");
            assert_eq!((named.url(), named.hash(), named.is_exact()), (key.url(), key.hash(), key.is_exact()));
            assert_eq!(named.naming(None), key);
        }
        let pan_page = page("https://shop.example/products/pan").unwrap();
        assert_eq!(pan_page.naming(Some(&pan)), pan_page, "the URL's own item");
    }

    #[test]
    fn a_dynamic_or_relative_url_is_no_page() {
        for (url, reason) in [
            ("https://shop.example/?item=mug&_=1", Reason::Dynamic),
            ("https://shop.example/products/mug?_", Reason::Dynamic),
            ("https://shop.example/about?%5F=1", Reason::Dynamic),
            ("/products/mug", Reason::NoPage),
            ("data:mug", Reason::NoPage),
            ("gopher://shop.example?item=mug", Reason::NoPage),
        ] {
            assert_eq!(canonical(url), Err(reason), "{url}");
        }
    }

    #[test]
    fn a_url_without_an_item_keeps_its_parameters() {
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
        fn any_path_is_normalized_once(path in "([a-zA-Z0-9%/~]|%[0-9a-fA-F]{2}){0,20}") {
            let once = normalized(&path);
            prop_assert_eq!(normalized(&once), once);
        }
    }
}
