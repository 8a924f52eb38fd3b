//! Which requests the page cache may answer. Everything else passes to the origin as it came, and the answer says why.

use http::{HeaderMap, HeaderName, Method, Uri, header};

use super::{key::Page, memory::Memory, reuse::Wish};
use crate::{
    config::{Forward, item_routes::ItemRoutes},
    ports::fetch::Request,
    proxy::is_hop_by_hop,
};

/// Why a request passes the cache by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Neither GET nor HEAD.
    Method,
    /// The URL has the parameter `_`, which says that its page is made for this request.
    Dynamic,
    /// The URL is no page's address.
    NoPage,
    /// The request's header of this name asks for what is nobody else's.
    Header(&'static str),
    /// The page was asked for a moment ago, and could not be stored: why.
    Unstorable(&'static str),
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
            Self::Dynamic | Self::NoPage | Self::Unstorable(_) | Self::RedisDown => "bypass",
        }
    }

    /// The reason as we name it.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Dynamic => "dynamic",
            Self::NoPage => "no-page",
            Self::Header(name) => name,
            Self::Unstorable(why) => why,
            Self::RedisDown => "redis-down",
        }
    }
}

/// Request headers that no stored page satisfies: somebody's own answer, or a condition on a write.
static PASSED: [HeaderName; 4] =
    [header::AUTHORIZATION, header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::UPGRADE];

/// The page that `request` asks for, and what it wants of a cache.
///
/// # Errors
/// Why the cache has no part in it.
pub fn admit(request: &Request, routes: &ItemRoutes, memory: &Memory) -> Result<(Page, Wish), Pass> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Pass::Method);
    }
    let page = memory.page(text(request.uri()), routes)?;
    if let Some(name) = PASSED.iter().find(|name| request.headers().contains_key(*name)) {
        return Err(Pass::Header(name.as_str()));
    }
    let wish = Wish::of(request.headers());
    // §5.2.1.5: nothing of it is to be kept, so it is as good as somebody's own.
    if wish.no_store() {
        return Err(Pass::Header("cache-control"));
    }
    Ok((page, wish))
}

/// An absolute URI as its text.
fn text(uri: &Uri) -> String {
    match (uri.scheme_str(), uri.authority(), uri.path_and_query()) {
        (Some(scheme), Some(authority), Some(rest)) => [scheme, "://", authority.as_str(), rest.as_str()].concat(),
        _ => uri.to_string(),
    }
}

/// What browsers send with every request, and the platform with what it passes on: nothing by which an origin tells people apart.
/// Conditions are not among them: a page that can not be stored would be sent whole to who has it.
const PLAIN: [&str; 25] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "cdn-loop",
    "cf-connecting-ip",
    "cf-ipcountry",
    "cf-ray",
    "cf-visitor",
    "cf-worker",
    "cookie",
    "dnt",
    "host",
    "pragma",
    "priority",
    "purpose",
    "referer",
    "save-data",
    "true-client-ip",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-real-ip",
];

/// Whether a request carries nothing of its own beside cookies. Where a page is not known to be for everybody, only the answer to
/// such a request can be one: any other header may be a key, or a name.
#[must_use]
pub fn is_plain(headers: &HeaderMap, forward: &Forward) -> bool {
    let Forward::Only(names) = forward else { return true };
    let is_plain = |name: &http::HeaderName| {
        let text = name.as_str();
        // What the platform sets it sets for all: the scheme and the host are in the key.
        let of_the_platform = text == "x-forwarded-proto" || text.starts_with("sec-") || is_hop_by_hop(text);
        of_the_platform || PLAIN.contains(&text) || names.contains(name)
    };
    headers.keys().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::fetch::Body;

    fn ask(method: Method, path: &str, headers: &[(&str, &str)]) -> Result<String, Pass> {
        let mut request = http::Request::builder().method(method).uri(format!("https://shop.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::Empty).unwrap();
        let memory = Memory::new(std::time::Duration::ZERO);
        let page = admit(&request, &ItemRoutes::default(), &memory).map(|(page, _)| page);
        page.map(|page| page.item().map(ToString::to_string).unwrap_or_default())
    }

    #[test]
    fn a_page_is_asked_for_by_get_or_head() {
        assert_eq!(ask(Method::GET, "/products/mug", &[("cookie", "a=b")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::HEAD, "/?item=mug", &[("cache-control", "no-cache")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::GET, "/cart", &[("range", "bytes=0-1")]).as_deref(), Ok(""));
        assert_eq!(ask(Method::POST, "/products/mug", &[]), Err(Pass::Method));
        assert_eq!(ask(Method::GET, "/products/mug?_=17", &[]), Err(Pass::Dynamic));
    }

    #[test]
    fn a_request_that_wants_what_is_nobody_elses_passes_by() {
        for (name, value) in [
            ("authorization", "Basic eDp5"),
            ("if-match", "\"a\""),
            ("upgrade", "websocket"),
            ("cache-control", "max-age=0, No-Store"),
        ] {
            let pass = ask(Method::GET, "/products/mug", &[(name, value)]).unwrap_err();
            assert_eq!(pass.forward(), "request", "{name}: {value}");
        }
    }

    #[test]
    fn a_header_of_its_own_makes_a_request_somebodys() {
        let listed = Forward::Only(vec!["x-country".parse().unwrap()]);
        let is_plain = |name: &'static str, forward| {
            is_plain(&[(name.parse().unwrap(), "x".parse().unwrap())].into_iter().collect(), forward)
        };
        for name in ["user-agent", "referer", "sec-fetch-mode", "cookie", "x-country", "connection"] {
            assert!(is_plain(name, &listed), "{name}");
        }
        for name in ["x-api-key", "x-forwarded-host", "x-original-url", "x-http-method-override", "origin"] {
            assert!(!is_plain(name, &listed) && is_plain(name, &Forward::All), "{name}");
        }
    }
}
