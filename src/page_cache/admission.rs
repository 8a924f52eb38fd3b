//! Admission: the requests that the page cache may answer, and the responses that it may store without stated freshness.
//! All other requests bypass the cache, and `Cache-Status` names the reason.

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};

use super::{
    key::PageKey,
    memory::PageKeys,
    policy::{
        Heuristic, Reason, RequestDirectives,
        freshness::{Arrival, Popularity, freshness},
    },
    selecting::SelectingHeaders,
};
use crate::{
    config::{Forward, HeaderRules, PageConfig, rules::UrlRules},
    ports::{
        fetch::{Request, Response},
        header_names::is_hop_by_hop,
        time::Timestamp,
    },
    proxy::{OriginDirectives, headers::websocket_upgrade},
};

/// Request headers that no stored page can satisfy: they ask for one visitor's response, or set a condition on a write.
static BYPASS_HEADERS: [HeaderName; 3] = [header::AUTHORIZATION, header::IF_MATCH, header::IF_UNMODIFIED_SINCE];

/// The key of the requested page, and the request's caching directives.
///
/// # Errors
/// The reason to bypass the cache.
pub fn admit(request: &Request, rules: &UrlRules, keys: &PageKeys) -> Result<(PageKey, RequestDirectives), Reason> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Reason::Method);
    }
    let key = keys.of_url(text(request.uri()), rules)?;
    if let Some(name) = BYPASS_HEADERS.iter().find(|name| request.headers().contains_key(*name)) {
        return Err(Reason::RequestHeader(name.as_str()));
    }
    // An offer of HTTP/2 (`h2c`) changes no response (RFC 9110 §7.8).
    if websocket_upgrade(request.headers()).is_some() {
        return Err(Reason::RequestHeader("upgrade"));
    }
    let directives = RequestDirectives::of(request.headers());
    if directives.no_store() {
        return Err(Reason::RequestHeader("cache-control"));
    }
    Ok((key, directives))
}

/// `Ok` if a response for this page may be stored although it states no freshness. `rank`: that of the page's item.
///
/// # Errors
/// [`Reason::Unpopular`], or as [`PageKey::by_popularity`].
pub fn popularity_of_page(config: &PageConfig, key: &PageKey, rank: Option<u64>) -> Popularity {
    if key.is_at_shared_path() { Ok(()) } else { key.by_popularity().and_then(|()| popularity(config, rank)) }
}

/// `Ok` if an item of this rank admits its page. `rank` is None for an item without views.
///
/// # Errors
/// [`Reason::Unpopular`].
pub fn popularity(config: &PageConfig, rank: Option<u64>) -> Popularity {
    rank.filter(|rank| *rank < config.rank_limit).map(drop).ok_or(Reason::Unpopular)
}

/// The effect of popularity on a response with the item of `shown`. The lookup ranked the item of `asked`; another item
/// counts as unpopular until the next lookup ranks it.
///
/// # Errors
/// The reason that popularity does not admit the response.
pub fn popularity_of_response(asked: &PageKey, shown: &PageKey, popularity: Popularity) -> Popularity {
    if asked.is_at_shared_path() || asked.item() == shown.item() {
        popularity
    } else {
        shown.by_popularity().and(Err(Reason::Unpopular))
    }
}

/// The lifetimes of a page whose response states none.
pub(super) fn heuristic(config: &PageConfig, key: &PageKey, popularity: Popularity) -> Heuristic {
    Heuristic { popularity, fresh: config.ttl, stale: config.stale, overrides: key.is_at_shared_path() }
}

/// `Ok` if the response could be stored as a shared render. Its cookies do not count: they are
/// this visitor's, and a shared render may have none. `status`: that of the response, or of [the page](status_of_page).
///
/// # Errors
/// The reason that forbids to store it.
pub(super) fn check_shareable(
    (status, headers): (StatusCode, &HeaderMap),
    directives: &OriginDirectives,
    heuristic: &Heuristic,
    selecting: &SelectingHeaders,
    now: Timestamp,
) -> Result<(), Reason> {
    if directives.is_personal {
        return Err(Reason::Personal);
    }
    let arrival = Arrival { at: now.into(), delay: Duration::ZERO };
    let mut headers = headers.clone();
    headers.remove(header::SET_COOKIE);
    match freshness(status, &headers, arrival, heuristic) {
        // A shared render asks for the body without a coding.
        Ok(_) | Err(Reason::Encoding) => {}
        Err(reason) => return Err(reason),
    }
    selecting.check_vary(&headers)
}

/// The status of the page of which the response is a part. A 304 (RFC 9110 §15.4.5) and a 206 (§15.3.7) have the headers of the
/// page's 200. `may_be_part`: [`asks_for_page`]. `max_bytes`: `PAGE_MAX_BYTES`.
///
/// # Errors
/// [`Reason::TooLarge`], or [`Reason::Status`] if the length of the page is unknown.
pub(super) fn status_of_page(response: &Response, may_be_part: bool, max_bytes: usize) -> Result<StatusCode, Reason> {
    match response.status() {
        StatusCode::NOT_MODIFIED if may_be_part => Ok(StatusCode::OK),
        StatusCode::PARTIAL_CONTENT if may_be_part => {
            let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
            let length = range.and_then(|range| range.rsplit_once('/')?.1.parse::<u64>().ok()).ok_or(Reason::Status)?;
            if length > max_bytes as u64 { Err(Reason::TooLarge) } else { Ok(StatusCode::OK) }
        }
        status => Ok(status),
    }
}

fn text(uri: &Uri) -> String {
    match (uri.scheme_str(), uri.authority(), uri.path_and_query()) {
        (Some(scheme), Some(authority), Some(rest)) => [scheme, "://", authority.as_str(), rest.as_str()].concat(),
        _ => uri.to_string(),
    }
}

/// Headers that browsers and the platform add by themselves; they identify nobody. Firefox adds `Alt-Used` over HTTP/3 (RFC 7838
/// §5), and a service worker its own headers. The headers [`FOR_LESS`] are not in this list: a conditional request goes to the
/// origin as it is, so that the origin can answer 304.
const COMMON_HEADERS: [&str; 35] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "alt-used",
    "cache-control",
    "cdn-loop",
    "cf-connecting-ip",
    "cf-ray",
    "cf-visitor",
    "cf-worker",
    "cookie",
    "device-memory",
    "dnt",
    "downlink",
    "dpr",
    "early-data",
    "ect",
    "host",
    "pragma",
    "priority",
    "purpose",
    "referer",
    "rtt",
    "save-data",
    "service-worker",
    "service-worker-navigation-preload",
    "true-client-ip",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-moz",
    "x-purpose",
    "x-real-ip",
];

/// Headers that ask for less than the page, if the client has the page or a part of it.
const FOR_LESS: [HeaderName; 4] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::RANGE, header::IF_RANGE];

/// Returns whether a request has, besides cookies, only headers that identify nobody. If a page is not known to be shared, only a
/// request without uncommon headers may start its shared render. Such a header may hold credentials.
#[must_use]
pub fn is_plain(headers: &HeaderMap, rules: &HeaderRules) -> bool {
    headers.keys().all(|name| is_common(name, rules))
}

/// Returns whether a request is plain, except for headers that ask for less than the page: conditions and ranges.
#[must_use]
pub fn asks_for_page(headers: &HeaderMap, rules: &HeaderRules) -> bool {
    headers.keys().all(|name| FOR_LESS.contains(name) || is_common(name, rules))
}

fn is_common(name: &HeaderName, rules: &HeaderRules) -> bool {
    let Forward::Only(names) = &rules.forward else { return true };
    let text = name.as_str();
    // The platform sets these for every request; scheme and host are in the key. `CF-IP…` has the visitor's place.
    let is_platforms = text == "x-forwarded-proto"
        || ["sec-", "cf-ip"].iter().any(|start| text.starts_with(start))
        || is_hop_by_hop(text);
    let is_named = names.contains(name) || rules.varied.contains(name);
    let is_normalized = || rules.normalized.iter().any(|rule| rule.name == *name);
    is_platforms || COMMON_HEADERS.contains(&text) || is_named || is_normalized()
}

#[cfg(test)]
mod tests {
    use super::{super::policy::ForwardReason, *};
    use crate::ports::fetch::Body;

    fn ask(method: Method, path: &str, headers: &[(&str, &str)]) -> Result<String, Reason> {
        let mut request = http::Request::builder().method(method).uri(format!("https://shop.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::Empty).unwrap();
        let page = admit(&request, &UrlRules::default(), &PageKeys::default()).map(|(page, _)| page);
        page.map(|page| page.item().map(ToString::to_string).unwrap_or_default())
    }

    #[test]
    fn get_and_head_ask_for_a_page() {
        assert_eq!(ask(Method::GET, "/products/mug", &[("cookie", "a=b")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::HEAD, "/?item=mug", &[("cache-control", "no-cache")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::GET, "/cart", &[("range", "bytes=0-1")]).as_deref(), Ok(""));
        assert_eq!(ask(Method::GET, "/products/mug", &[("upgrade", "h2c")]).as_deref(), Ok("mug"));
        assert_eq!(ask(Method::POST, "/products/mug", &[]), Err(Reason::Method));
        assert_eq!(ask(Method::GET, "/products/mug?_=17", &[]), Err(Reason::Dynamic));
    }

    #[test]
    fn a_request_for_a_personal_response_bypasses_the_cache() {
        for (name, value) in [
            ("authorization", "Basic eDp5"),
            ("if-match", "\"a\""),
            ("upgrade", "websocket"),
            ("cache-control", "max-age=0, No-Store"),
        ] {
            let reason = ask(Method::GET, "/products/mug", &[(name, value)]).unwrap_err();
            assert_eq!(reason.forward(), ForwardReason::Request, "{name}: {value}");
        }
    }

    #[test]
    fn an_uncommon_header_makes_a_request_personal() {
        let listed = Forward::Only(vec!["x-country".parse().unwrap()]).into();
        let is_plain = |name: &'static str, rules: &HeaderRules| {
            is_plain(&[(name.parse().unwrap(), "x".parse().unwrap())].into_iter().collect(), rules)
        };
        for name in [
            "user-agent",
            "referer",
            "sec-fetch-mode",
            "cookie",
            "x-country",
            "connection",
            "alt-used",
            "cf-ipcity",
            "service-worker-navigation-preload",
            "x-moz",
            "x-purpose",
        ] {
            assert!(is_plain(name, &listed), "{name}");
        }
        for name in [
            "x-api-key",
            "cf-access-jwt-assertion",
            "x-forwarded-host",
            "x-original-url",
            "x-http-method-override",
            "origin",
        ] {
            assert!(!is_plain(name, &listed) && is_plain(name, &Forward::All.into()), "{name}");
        }
    }
}
