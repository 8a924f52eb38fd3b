//! URL patterns that name an item. They select the pages that are cached by rank, the visits that count as views, and
//! the pages that the purge of an item voids.

use percent_encoding::percent_decode_str;
use url::form_urlencoded;

use super::rules::paths::pages_of_data;
use crate::schema::ids::ItemId;

/// The patterns of `ITEM_ROUTES` or `FLASH_CHECKOUT`. The default is that of `ITEM_ROUTES`: all forms of the demo shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRoutes(Vec<Route>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Route {
    /// `/products/{item}`: the path segment between `before` and `after` is the item.
    Path { before: String, after: String },
    /// `/?item={item}`: on this path, the query parameter of this name is the item.
    Query { path: String, parameter: String },
}

impl ItemRoutes {
    /// Reads patterns separated by commas. A pattern is a path with one segment `{item}`, or a path and `?name={item}`.
    ///
    /// # Errors
    /// The first wrong pattern and the remedy, as the rest of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_with("{item}", text)
    }

    /// Like [`ItemRoutes::parse`], with `placeholder` instead of `{item}`.
    ///
    /// # Errors
    /// As [`ItemRoutes::parse`].
    pub fn parse_with(placeholder: &str, text: &str) -> Result<Self, String> {
        text.split(',').map(|pattern| Route::parse(pattern.trim(), placeholder)).collect::<Result<_, _>>().map(Self)
    }

    /// The item that a URL names. None if the name is not an [`ItemId`], or if the query gives the parameter twice.
    #[must_use]
    pub fn item(&self, path: &str, query: Option<&str>) -> Option<ItemId> {
        self.0.iter().find_map(|route| route.item(path, query.unwrap_or_default()))
    }

    /// The pattern for links to an item's page, such as `/products/{item}`: the first with the item in the path, else the
    /// first.
    #[must_use]
    pub fn pattern(&self) -> String {
        let in_path = self.0.iter().find(|route| matches!(route, Route::Path { .. }));
        match in_path.or_else(|| self.0.first()) {
            Some(Route::Path { before, after }) => format!("{before}{{item}}{after}"),
            Some(Route::Query { path, parameter }) => format!("{path}?{parameter}={{item}}"),
            None => String::new(),
        }
    }

    /// The query parameters that name an item on `path`.
    pub fn parameters<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(move |route| match route {
            Route::Query { path: own, parameter } if own == path => Some(parameter.as_str()),
            _ => None,
        })
    }
}

impl Default for ItemRoutes {
    fn default() -> Self {
        Self(vec![
            Route::Query { path: "/".to_owned(), parameter: "item".to_owned() },
            Route::Path { before: "/products/".to_owned(), after: String::new() },
            Route::Path { before: "/flash/".to_owned(), after: String::new() },
        ])
    }
}

impl Route {
    fn parse(pattern: &str, placeholder: &str) -> Result<Self, String> {
        let wrong = || {
            let examples = format!("/products/{placeholder} or /shop?item={placeholder}");
            format!("has the pattern {pattern:?}: set patterns such as {examples}")
        };
        if !pattern.starts_with('/') || pattern.matches(placeholder).count() != 1 {
            return Err(wrong());
        }
        if let Some((path, query)) = pattern.split_once('?') {
            let parameter =
                query.strip_suffix(placeholder).and_then(|before| before.strip_suffix('=')).ok_or_else(wrong)?;
            let plain = !parameter.is_empty() && parameter != "_" && !parameter.contains(['=', '&', '{', '}']);
            return plain
                .then(|| Self::Query { path: path.to_owned(), parameter: parameter.to_owned() })
                .ok_or_else(wrong);
        }
        let (before, after) = pattern.split_once(placeholder).ok_or_else(wrong)?;
        let segment = before.ends_with('/') && (after.is_empty() || after.starts_with('/'));
        segment.then(|| Self::Path { before: before.to_owned(), after: after.to_owned() }).ok_or_else(wrong)
    }

    fn item(&self, path: &str, query: &str) -> Option<ItemId> {
        match self {
            Self::Path { before, after } => {
                // The path of the data lacks a slash at the end of the page's path.
                let (paths, after) = match pages_of_data(path) {
                    [None, _] => ([Some(path), None], after.as_str()),
                    pages => (pages, after.trim_end_matches('/')),
                };
                let mut paths = paths.into_iter().flatten();
                let segment = paths.find_map(|path| path.strip_prefix(before.as_str())?.strip_suffix(after))?;
                ItemId::parse(&percent_decode_str(segment).decode_utf8().ok()?).ok()
            }
            Self::Query { path: own, parameter } => {
                if path != own {
                    return None;
                }
                let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == parameter);
                let (_, value) = values.next()?;
                if values.next().is_some() {
                    return None;
                }
                ItemId::parse(&value).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_item_or_none() {
        let routes = ItemRoutes::parse("/?item={item}, /products/{item}, /a/{item}/view, /slash/{item}/").unwrap();
        for (path, query, item) in [
            ("/", Some("item=mug"), Some("mug")),
            ("/", Some("x=1&item=mug"), Some("mug")),
            ("/", Some("item=mug&item=cup"), None),
            ("/", Some("item="), None),
            ("/", Some("item=a%3Ab"), None),
            ("/", None, None),
            ("/products/mug", None, Some("mug")),
            ("/products/m%75g", None, Some("mug")),
            ("/products/a/b", None, None),
            ("/products/", None, None),
            ("/products/%ff", None, None),
            ("/a/mug/view", None, Some("mug")),
            ("/products/mug.data", None, Some("mug")),
            ("/products/mug/_.data", None, Some("mug")),
            ("/a/mug/view.data", None, Some("mug")),
            ("/products/mug/__data.json", None, Some("mug")),
            ("/products/mug/q-data.json", None, Some("mug")),
            ("/slash/mug/q-data.json", None, Some("mug")),
            ("/products/mug/index.pageContext.json", None, Some("mug")),
            ("/_next/data/BUILD/products/mug.json", None, Some("mug")),
            ("/_next/data/BUILD/en/products/mug.json", None, Some("mug")),
            ("/_next/data/BUILD/slash/mug.json", None, Some("mug")),
            ("/_next/data/BUILD/en/other/products/mug.json", None, None),
            ("/slash/mug/_.data", None, Some("mug")),
            ("/slash/mug", None, None),
            ("/slash/mug/data", None, None),
            ("/a/mug/view/_payload.json", None, Some("mug")),
            ("/products/__data.json", None, None),
            ("/products/.data", None, None),
            ("/products/data", None, Some("data")),
            ("/other", Some("item=mug"), None),
        ] {
            assert_eq!(routes.item(path, query).as_ref().map(ItemId::as_str), item, "{path} {query:?}");
        }
    }

    #[test]
    fn a_pattern_that_names_no_item_is_refused() {
        for pattern in [
            "",
            "/products",
            "products/{item}",
            "/p{item}",
            "/{item}/{item}",
            "/?{item}",
            "/?_={item}",
            "/?a=1&b={item}",
        ] {
            assert!(ItemRoutes::parse(pattern).is_err(), "{pattern}");
        }
    }
}
