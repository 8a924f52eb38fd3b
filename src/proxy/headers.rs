//! Header rules between visitor, edgefront and origin: hop-by-hop headers, `X-Forwarded-*`, `Location`.

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri,
    header::{self, Entry},
};
use url::Url;

use crate::ports::{
    error::Error,
    fetch::{FetchError, Request},
    header_names::{is_hop_by_hop, is_of_proxies},
};

/// The visitor's address, which the platform sets.
pub(super) const ADDRESS: HeaderName = HeaderName::from_static("cf-connecting-ip");

/// The origin's URL for a requested one: the path of `ORIGIN_URL`, then the requested path and query, byte for byte.
pub(super) fn origin_uri(origin: &Url, requested: &Uri) -> Result<Uri, Error> {
    let path = requested.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let address = format!("{}{}{path}", root(origin), prefix(origin));
    // Fails only if the URI exceeds 64 KB.
    address.parse().map_err(|_| FetchError::Unreachable.into())
}

fn root(origin: &Url) -> String {
    origin.origin().ascii_serialization()
}

/// `/shop` of `https://shop.example/shop/`, or nothing.
pub(super) fn prefix(origin: &Url) -> &str {
    origin.path().trim_end_matches('/')
}

/// Replaces the client's claims about host, scheme and address by the true values, so that the origin's links lead to
/// edgefront. Only personal requests carry an address (`CF-Connecting-IP`, which the platform sets).
pub(super) fn set_forwarded(request: &mut Request) {
    remove(request.headers_mut(), is_of_proxies);
    let address = request.headers().get(&ADDRESS).cloned();
    let uri = request.uri();
    let text = |value: Option<String>| value.and_then(|value| HeaderValue::try_from(value).ok());
    let values = [
        ("x-forwarded-for", address.clone()),
        ("x-forwarded-host", text(uri.authority().map(ToString::to_string))),
        ("x-forwarded-proto", text(uri.scheme_str().map(str::to_owned))),
        ("x-real-ip", address),
    ];
    let values = values.map(|(name, value)| value.map(|value| (HeaderName::from_static(name), value)));
    request.headers_mut().extend(values.into_iter().flatten());
}

/// Replaces the origin's own address in `Location` or `Content-Location` by the same path at edgefront. Keeps other addresses.
pub(super) fn rewrite_location(headers: &mut HeaderMap, name: HeaderName, origin: &Url) {
    let Entry::Occupied(mut location) = headers.entry(name) else { return };
    // Old shops send other characters than ASCII as UTF-8.
    let Ok(text) = str::from_utf8(location.get().as_bytes()) else { return };
    let prefix = prefix(origin);
    let path = match split_root(text) {
        Some((root, path)) => is_root_of(root, origin).then_some(path),
        None => (!prefix.is_empty() && text.starts_with('/')).then_some(text),
    };
    let Some(here) = path.and_then(|path| path.strip_prefix(prefix)) else { return };
    let here = match here.chars().next() {
        Some('/') if !names_a_host(here) => here.to_owned(),
        None | Some('?' | '#') => format!("/{here}"),
        // Another path, of which the origin's is only a prefix.
        Some(_) => return,
    };
    if let Ok(here) = HeaderValue::try_from(here) {
        location.insert(here);
    }
}

/// Splits `https://shop.example/cart` or `//shop.example/cart` before the path. None for a path.
fn split_root(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once("//")?;
    let is_scheme = ["", "http:", "https:"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    is_scheme.then(|| location.split_at(scheme.len() + "//".len() + end))
}

/// Returns whether `root` has the host and port of the origin. An origin behind a TLS proxy may name itself by `http`.
fn is_root_of(root: &str, origin: &Url) -> bool {
    let Ok(root) = origin.join(root) else { return false };
    let has_credentials = !root.username().is_empty() || root.password().is_some();
    let is_without_tls =
        root.scheme() == "http" && root.port().is_none() && origin.scheme() == "https" && origin.port().is_none();
    let has_same_scheme_and_port =
        root.port_or_known_default() == origin.port_or_known_default() && root.scheme() == origin.scheme();
    root.host() == origin.host() && !has_credentials && (has_same_scheme_and_port || is_without_tls)
}

/// Returns whether a browser reads a path as `//host`: it treats a backslash as a slash and ignores tabs (URL standard,
/// §4.4).
fn names_a_host(path: &str) -> bool {
    let mut characters = path.chars().filter(|character| *character != '\t').skip(1);
    matches!(characters.next(), Some('/' | '\\'))
}

/// The header `Upgrade` of a WebSocket handshake (RFC 6455 §4.1). No other protocol passes.
pub fn websocket_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let upgrade = headers.get(header::UPGRADE)?;
    upgrade.as_bytes().eq_ignore_ascii_case(b"websocket").then(|| upgrade.clone())
}

pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let named: Vec<HeaderName> =
        lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    // The platform sets the address, so no client may withdraw it.
    for name in named.iter().filter(|name| **name != ADDRESS) {
        headers.remove(name);
    }
    remove(headers, |name| is_hop_by_hop(name.as_str()));
}

pub(super) fn remove(headers: &mut HeaderMap, predicate: impl Fn(&HeaderName) -> bool) {
    let removed: Vec<_> = headers.keys().filter(|name| predicate(name)).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_at_the_origin_leads_to_edgefront() {
        let origin = Url::parse("https://origin.example").unwrap();
        for (location, rewritten) in [
            ("https://origin.example/catégorie", "/catégorie"),
            ("https://origin.example:443/x", "/x"),
            ("HTTPS://Origin.Example?a", "/?a"),
            ("//origin.example/x", "/x"),
            // An application that does not know of the TLS in front of it.
            ("http://origin.example/x", "/x"),
            ("http://origin.example:8080/x", "http://origin.example:8080/x"),
            ("https://origin.example.net/x", "https://origin.example.net/x"),
            ("https://origin.example@evil.example/x", "https://origin.example@evil.example/x"),
            ("https://origin.example\\.evil.example/x", "https://origin.example\\.evil.example/x"),
            ("ftp://origin.example/x", "ftp://origin.example/x"),
            ("/search?next=https://origin.example/x", "/search?next=https://origin.example/x"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::try_from(location).unwrap());
            rewrite_location(&mut headers, header::LOCATION, &origin);
            assert_eq!(str::from_utf8(headers[header::LOCATION].as_bytes()).unwrap(), rewritten);
        }
    }
}
