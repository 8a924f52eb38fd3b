//! Classes of request headers, by their names, and headers from text.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers besides `Cache-Control` that may let a cache in front of edgefront store a response (RFC 9111 §5.3, RFC 9213 §3).
pub const OTHER_CACHE_HEADERS: [&str; 4] =
    ["cdn-cache-control", "cloudflare-cdn-cache-control", "surrogate-control", "expires"];

/// Lets only the visitor's browser keep a response, and makes the browser validate it each time. If the origin says
/// `no-store`, the browser keeps nothing, either. The origin's `no-transform` stays.
pub fn make_private(headers: &mut HeaderMap) {
    let is_kept = !has_directive(headers, "no-store");
    replace_control(headers, if is_kept { "private, no-cache" } else { NO_STORE });
}

/// Lets nobody keep a response, because it has a cookie of one visitor. The origin's `no-transform` stays.
pub fn make_unstorable(headers: &mut HeaderMap) {
    replace_control(headers, NO_STORE);
}

/// `Cache-Control` of a response that no cache may keep.
pub const NO_STORE: &str = "private, no-store";

fn replace_control(headers: &mut HeaderMap, control: &'static str) {
    let kept = if has_directive(headers, "no-transform") { ", no-transform" } else { "" };
    headers.remove(header::CACHE_CONTROL);
    append_text(headers, header::CACHE_CONTROL, [control, kept].concat());
    remove_all(headers, &OTHER_CACHE_HEADERS);
}

/// Returns whether `Cache-Control` contains the name, even within another word: the most restrictive reading.
fn has_directive(headers: &HeaderMap, name: &str) -> bool {
    let mut lines = headers.get_all(header::CACHE_CONTROL).iter();
    lines.any(|line| String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase().contains(name))
}

/// Digests of a body (RFC 9530). They do not hold for a body that edgefront edits.
pub const DIGESTS: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];

pub fn remove_all(headers: &mut HeaderMap, names: &[&str]) {
    for name in names {
        headers.remove(*name);
    }
}

/// Appends a header. Text that is no header value is left out: text of visible ASCII always is one. `HeaderMap::extend`
/// would be compiled once for each type of iterator.
pub fn append_text(headers: &mut HeaderMap, name: HeaderName, text: String) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(name, value);
    }
}

/// Request headers that proxies use to describe the client and its request. A client could claim anything with them, so
/// the origin gets only values that edgefront sets. A CGI program would take `Proxy` for the address of its proxy
/// (`HTTP_PROXY`, httpoxy.org).
const PROXY_HEADERS: [&str; 25] = [
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "forwarded-for",
    "front-end-https",
    "proxy",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-forwarded",
    "x-forwarded-for",
    "x-host",
    "x-http-host-override",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-rewrite-url",
    "x-url-scheme",
];

/// Returns whether proxies use a request header to describe the client, host, scheme or path. Every `X-Forwarded-*`
/// counts. An origin behind CGI or WSGI reads `X_Forwarded_For` as `X-Forwarded-For`, and `CF_Connecting_IP` as the platform's header.
#[must_use]
pub fn is_of_proxies(name: &HeaderName) -> bool {
    let is_named = |name: &str| name.starts_with("x-forwarded-") || PROXY_HEADERS.contains(&name);
    let is_special = |character: char| !character.is_ascii_alphanumeric() && character != '-';
    if !name.as_str().contains(is_special) {
        return is_named(name.as_str());
    }
    let read = name.as_str().replace(is_special, "-");
    is_named(&read) || read.starts_with("cf-")
}

/// Hop-by-hop headers (RFC 9110 §7.6.1); `Connection` can name more.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    // Beside `Upgrade: h2c` (RFC 7540 §3.2.1).
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a header is hop-by-hop by its name.
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    HOP_BY_HOP.contains(&name)
}

/// Returns whether a header is part of the `Edge-*` contract. `Edge_User` and `Edge.User` count: an origin behind CGI
/// (RFC 3875 §4.1.18) reads them as `Edge-User`.
#[must_use]
pub fn is_edge(name: &HeaderName) -> bool {
    name.as_str().strip_prefix("edge").is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
}
