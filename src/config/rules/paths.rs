//! Rules for paths. A rule that restricts covers every spelling that some origin reads as the same path, so that no
//! spelling evades it.

use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

use super::{Patterns, entries};

/// A list of paths, such as `/admin/*, /checkout`, decoded and in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathPatterns {
    patterns: Patterns,
    /// A pattern ends with a slash, or with `/*`: it also names the path without them.
    has_folders: bool,
}

impl PathPatterns {
    /// Parses paths separated by commas. `/caf%C3%A9` and `/café` are the same path.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let mut paths = entries(&text, ',');
        let has_folders = paths.clone().any(|path| path.ends_with('/') || path.ends_with("/*"));
        let is_path = |path: &str| path.starts_with('/') && !path.contains(['?', '#', '{']) && !path.contains("//");
        if let Some(path) = paths.find(|path| !is_path(path)) {
            return Err(format!("has {path:?}: a path begins with / and has no ?, #, {{ or //, such as /shop/*"));
        }
        let patterns = Patterns::parse(&utf8_percent_encode(&text, &AsciiSet::EMPTY).to_string())?.decoded();
        Ok(Self { patterns, has_folders })
    }

    /// Returns whether the list contains a pattern for a spelling of `path`.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        // Most shops have no rule of a kind, and each request is checked.
        if self.patterns.is_empty() {
            return false;
        }
        // The spelling of nearly every request: without lists.
        if !path.contains(['%', '\\', ';'])
            && !path.contains("//")
            && !path.bytes().any(|byte| byte.is_ascii_uppercase())
        {
            return self.contains_with_or_without_slash(path.trim_end_matches('/'));
        }
        let path = percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
        // Some origins ignore everything after an encoded NUL, `?` or `#`.
        let cut = path.find(['\0', '?', '#']).and_then(|end| path.get(..end));
        let names = |segments: &[String]| self.contains_with_or_without_slash(&format!("/{}", segments.join("/")));
        let mut read = [Some(path.as_str()), cut].into_iter().flatten().map(segments);
        read.any(|segments| names(&segments) || names(&resolved(segments)))
    }

    /// Returns whether the list contains a pattern for `path` itself, for rules that permit something. Upper and lower case are
    /// equal. A spelling that origins read in different ways does not count.
    #[must_use]
    pub fn contains_exactly(&self, path: &str) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let decoded = percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
        let is_plain = decoded.matches('/').count() == path.matches('/').count()
            && !decoded.contains("//")
            && !decoded.contains(['\\', ';', '%'])
            && !decoded.split('/').any(|segment| matches!(segment, "." | ".."));
        is_plain && self.patterns.contains(&decoded)
    }

    /// Returns whether the list contains a pattern for `path`, which has no slash at its end, or for `path` with one. The data and
    /// other formats of a page count as the page, with and without a front controller in the path.
    fn contains_with_or_without_slash(&self, path: &str) -> bool {
        let routed = path.strip_prefix(FRONT_CONTROLLER).filter(|routed| routed.starts_with('/'));
        [Some(path), routed]
            .into_iter()
            .flatten()
            .flat_map(|path| {
                let [page, other] = pages_of_data(path);
                [Some(path), page, other, page_of_format(path)]
            })
            .flatten()
            .any(|path| self.patterns.contains(path) || self.has_folders && self.patterns.contains(&format!("{path}/")))
    }

    /// The paths, decoded and in lower case.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.patterns.names()
    }
}

/// The ends of the paths of data. React Router serves the data of `/cart` at `/cart.data`, and those of `/` and `/cart/` at
/// `/_.data` and `/cart/_.data`. SvelteKit adds `/__data.json`, Nuxt `/_payload.json`, Qwik City `/q-data.json`, and Vike
/// `/index.pageContext.json`, which rules have in lower case.
const DATA_SUFFIXES: [&str; 7] = [
    "/_.data",
    ".data",
    "/__data.json",
    "/_payload.json",
    "/q-data.json",
    "/index.pageContext.json",
    "/index.pagecontext.json",
];

/// The data of the pages router of Next.js: `/_next/data/BUILD/cart.json` of `/cart`, and `index.json` of `/`.
const NEXT_DATA: &str = "/_next/data/";

/// The paths of pages for the path of their data, without a slash at their end. None for another path.
///
/// Next.js puts the language before each path of data, also that of the default language, whose pages have none. So
/// `/_next/data/BUILD/en/cart.json` are the data of `/en/cart` or `/cart`.
#[must_use]
pub fn pages_of_data(path: &str) -> [Option<&str>; 2] {
    let Some(data) = path.strip_prefix(NEXT_DATA) else {
        let page = DATA_SUFFIXES.iter().find_map(|suffix| path.strip_suffix(suffix));
        return [page.map(|page| if page.is_empty() { "/" } else { page }), None];
    };
    let page = data.strip_suffix(".json").and_then(|data| data.get(data.find('/')?..));
    let other =
        page.and_then(|page| page.get(1..)).map(|page| page.find('/').and_then(|end| page.get(end..)).unwrap_or("/"));
    [page.map(|page| if page == "/index" { "/" } else { page }), other]
}

/// Symfony, Laravel, Magento and others route `/index.php/cart` like `/cart`.
const FRONT_CONTROLLER: &str = "/index.php";

/// The path of a page for the path of one of its formats: Rails routes `/cart.json` like `/cart`. Some servers ignore a dot at the
/// end. None for a path without a format.
fn page_of_format(path: &str) -> Option<&str> {
    let (page, format) = path.rsplit_once('.')?;
    (!page.ends_with('/') && !format.contains('/')).then_some(page)
}

/// The segments of a decoded path, without what some origins ignore: empty segments, `.`, parameters (`;a=b`, RFC 3986 §3.3),
/// and white space at the end.
fn segments(path: &str) -> Vec<String> {
    let read = |name: &str| name.split(';').next().unwrap_or_default().trim_ascii_end().to_owned();
    let segments = path.split(['/', '\\']).map(read);
    segments.filter(|name| !matches!(name.as_str(), "" | ".")).collect()
}

/// Resolves `..` for an origin that decodes `%2f` first; the platform leaves it encoded.
fn resolved(segments: Vec<String>) -> Vec<String> {
    segments.into_iter().fold(Vec::new(), |mut resolved, name| {
        if name == ".." {
            resolved.pop();
        } else {
            resolved.push(name);
        }
        resolved
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_itself_is_contained_exactly() {
        let rules = PathPatterns::parse("/, /shoes/*, /café").unwrap();
        for path in ["/", "/shoes/", "/shoes/Red", "/SHOES/red", "/caf%C3%A9", "/shoes/a/b"] {
            assert!(rules.contains_exactly(path), "{path}");
        }
        for path in [
            "//",
            "/shoes",
            "/shoes//red",
            "/shoes/a;b=c",
            "/shoes/a%2Fb",
            "/shoes/a%5cb",
            "/shoes/..%2fcart",
            "/café/",
        ] {
            assert!(!rules.contains_exactly(path), "{path}");
        }
        assert!(!PathPatterns::default().contains_exactly("/"));
    }

    #[test]
    fn no_spelling_of_a_path_evades_its_rule() {
        let rules = PathPatterns::parse("/admin/*, /Checkout").unwrap();
        for path in [
            "/admin",
            "/admin/",
            "/admin/orders",
            "//admin/x",
            "/ADMIN/x",
            "/admin%2Fx",
            "/%2Fadmin/x",
            "/admin%5Cx",
            "/admin;a=b/x",
            "/a/..%2Fadmin/x",
            "/admin/..%2Fa",
            "/.%2Fadmin/x",
            "/checkout",
            "/checkout/",
            "/Checkout",
            "/checkout;jsessionid=1",
            "/%63heckout",
            "/checkout%2f",
            "/a%5c..%5ccheckout",
            "/admin/..%2fa",
            "/admin.data",
            "/admin/_.data",
            "/Checkout.data",
            "//checkout.data",
            "/admin/__data.json",
            "/admin/orders/_payload.json",
            "/Checkout/__DATA.json",
            "/checkout/_payload.json",
            "/checkout/q-data.json",
            "/checkout/index.pageContext.json",
            "/_next/data/BUILD/checkout.json",
            "/_next/data/BUILD/de/admin/orders.json",
            "/checkout.json",
            "/checkout.",
            "/checkout%20",
            "/checkout%0a",
            "/checkout%00.css",
            "/checkout%3fa.css",
            "/checkout%3Fa/b",
            "/checkout%00/b",
            "/a/..%2fcheckout%00/b",
            "/checkout%23a/b",
            "/admin%09/x",
            "/index.php/admin/x",
            "/Index.php/checkout.html",
            "/index.php%2Fcheckout",
        ] {
            assert!(rules.contains(path), "{path}");
        }
        for path in [
            "/",
            "/administrators",
            "/a/admin/x",
            "/products/Aa",
            "/a%2Fadmin%2Fx",
            "/checkouts",
            "/checkouts.data",
            "/index.phpx/admin/x",
            "/.checkout",
            "/checkout.d/x",
        ] {
            assert!(!rules.contains(path), "{path}");
        }
        let home = PathPatterns::parse("/, /cart.data").unwrap();
        assert!(
            home.contains("/__data.json")
                && home.contains("/_next/data/b/index.json")
                && home.contains("/_next/data/b/de.json")
                && !home.contains("/_next/data/b/a/b.json")
                && home.contains("/_.data")
                && home.contains("/cart.data")
                && !home.contains("/cart")
        );
        let encoded = PathPatterns::parse("/my%20account/*, /M%c3%bcller, /café/*, /faq%3f/*").unwrap();
        for path in ["/my%20account/1", "/faq%3F/a", "/m%C3%BCller/", "/M%c3%bcller", "/caf%C3%A9/menu"] {
            assert!(encoded.contains(path), "{path}");
        }
        assert!(!PathPatterns::default().contains("/ADMIN"));
    }
}
