//! Which requests the page cache may answer. Everything else passes to the origin as it came, and the answer says why.

use http::{Method, header};

use super::{cache_control::CacheControl, key::Page};
use crate::{fetch::Request, item_routes::ItemRoutes};

/// Why a request passes the cache by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Neither GET nor HEAD.
    Method,
    /// The URL names no item.
    NoItem,
    /// The URL has the parameter `_`, which says that its page is made for this request.
    Dynamic,
    /// A parameter is given twice or is not known.
    Parameters,
    /// The request's header of this name asks for more than a stored page can give.
    Header(&'static str),
    /// The item's rank is `PAGE_RANK_LIMIT` or more, or it has none.
    Unpopular,
    /// Redis did not say what is stored.
    RedisDown,
}

impl Pass {
    /// The reason as RFC 9211 names it (§2.2).
    #[must_use]
    pub const fn forward(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Header(_) => "request",
            Self::NoItem | Self::Dynamic | Self::Parameters | Self::Unpopular | Self::RedisDown => "bypass",
        }
    }

    /// The reason as we name it.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::NoItem => "no-item",
            Self::Dynamic => "dynamic",
            Self::Parameters => "parameters",
            Self::Header(name) => name,
            Self::Unpopular => "unpopular",
            Self::RedisDown => "redis-down",
        }
    }
}

/// Request headers that a stored page does not satisfy: somebody's own answer, a part of it, or a condition on a write.
const PASSED: [&str; 5] = ["authorization", "range", "if-match", "if-unmodified-since", "upgrade"];

/// The page that `request` asks for.
///
/// # Errors
/// Why the cache has no part in it.
pub fn admit(request: &Request, routes: &ItemRoutes) -> Result<Page, Pass> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Pass::Method);
    }
    let page = Page::of_url(&request.uri().to_string(), routes)?;
    if let Some(name) = PASSED.into_iter().find(|name| request.headers().contains_key(*name)) {
        return Err(Pass::Header(name));
    }
    let control = CacheControl::of(request.headers());
    let pragma = control.is_empty() && request.headers().get(header::PRAGMA).is_some_and(|value| value == "no-cache");
    if control.has("no-cache") || control.has("no-store") || pragma {
        return Err(Pass::Header("cache-control"));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::Body;

    fn ask(method: Method, path: &str, headers: &[(&str, &str)]) -> Result<String, Pass> {
        let mut request = http::Request::builder().method(method).uri(format!("https://shop.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::Empty).unwrap();
        admit(&request, &ItemRoutes::default()).map(|page| page.item().to_string())
    }

    #[test]
    fn a_page_is_asked_for_by_get_or_head_of_an_item() {
        assert_eq!(ask(Method::GET, "/products/mug", &[("cookie", "a=b")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::HEAD, "/?item=mug", &[("cache-control", "max-age=0")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::POST, "/products/mug", &[]), Err(Pass::Method));
        assert_eq!(ask(Method::GET, "/cart", &[]), Err(Pass::NoItem));
        assert_eq!(ask(Method::GET, "/products/mug?_=17", &[]), Err(Pass::Dynamic));
    }

    #[test]
    fn a_request_that_wants_more_than_the_page_passes_by() {
        for (name, value) in [
            ("authorization", "Basic eDp5"),
            ("range", "bytes=0-1"),
            ("cache-control", "no-cache"),
            ("cache-control", "max-age=0, No-Store"),
            ("pragma", "no-cache"),
        ] {
            let pass = ask(Method::GET, "/products/mug", &[(name, value)]).unwrap_err();
            assert_eq!(pass.forward(), "request", "{name}: {value}");
        }
    }
}
