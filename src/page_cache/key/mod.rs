//! The key of a page: its canonical URL and the URL's hash. Equal keys mean equal requests to the origin, because the
//! origin is asked for the canonical URL.

use std::{borrow::Cow, fmt::Write as _, rc::Rc};

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
        let (sorted, item, by_popularity) = match known_parameters(&url, &path, routes, query_rules) {
            Ok((sorted, item)) => (sorted, Some(item), Ok(())),
            Err(reason) => (None, routes.item(&path, url.query()), Err(reason)),
        };
        let is_sorted = sorted.is_some();
        let query = sorted.unwrap_or_else(|| other_parameters(&url, query_rules));
        let is_at_shared_path =
            rules.shared_paths.contains_exactly(&path) && (by_popularity.is_ok() || are_kept(&query, &path, rules));
        let is_exact = is_sorted || is_exact(text, &path, &query, query_rules);
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

    /// The item that the URL names.
    #[must_use]
    pub fn item_of_url(&self) -> Option<&ItemId> {
        self.parts.item.as_ref()
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

/// Returns the item if the URL has only item parameters, ignored parameters and listed values of `QUERY_KEPT`. Also returns the
/// sorted query if no parameter is listed. Otherwise the order stays, because many shops copy the query into the page's links.
fn known_parameters(
    url: &Url,
    path: &str,
    routes: &ItemRoutes,
    rules: &QueryRules,
) -> Result<(Option<String>, ItemId), Reason> {
    let item = routes.item(path, url.query()).ok_or(Reason::NoItem)?;
    let mut kept: Vec<_> = url.query_pairs().filter(|(name, _)| rules.is_part_of_key(name)).collect();
    sort::sort_by(&mut kept, Ord::cmp);
    let is_of_item = |name: &str| routes.parameters(path).any(|own| own == name);
    let twice = kept.iter().zip(kept.iter().skip(1)).any(|((one, _), (next, _))| one == next);
    if twice || kept.iter().any(|(name, value)| !is_of_item(name) && !rules.kept.lists(name, value)) {
        return Err(Reason::Parameters);
    }
    let is_sorted = kept.iter().all(|(name, _)| is_of_item(name));
    let sorted = is_sorted.then(|| form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish());
    Ok((sorted, item))
}

/// Returns whether `PATHS_SHARED` covers these parameters: each names an item, or `QUERY_KEPT` allows it. Listed values may not
/// repeat: a visitor could store one page for each number of repetitions.
fn are_kept(query: &str, path: &str, UrlRules { items, query: QueryRules { kept, .. }, .. }: &UrlRules) -> bool {
    let mut listed: Vec<Cow<str>> = Vec::new();
    form_urlencoded::parse(query.as_bytes()).all(|(name, value)| {
        if kept.allows_any_value(&name) || items.parameters(path).any(|own| own == name) {
            return true;
        }
        let is_new = kept.lists(&name, &value) && !listed.contains(&name);
        listed.push(name);
        is_new
    })
}

/// All parameters except ignored ones. They keep their order, because it may matter to the origin.
fn other_parameters(url: &Url, rules: &QueryRules) -> String {
    let kept = kept_parts(url.query().unwrap_or_default(), rules);
    kept.map(normalized).collect::<Vec<_>>().join("&")
}

/// The parts of a query without ignored parameters and empty parts.
fn kept_parts<'a>(query: &'a str, rules: &'a QueryRules) -> impl Iterator<Item = &'a str> {
    query.split('&').filter(move |part| {
        // An empty part is none.
        let name = form_urlencoded::parse(part.as_bytes()).next().map(|(name, _)| name);
        name.is_some_and(|name| rules.is_part_of_key(&name))
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
mod tests;
