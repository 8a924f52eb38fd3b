//! CSRF protection for origins with a double-submit cookie (`CSRF_COOKIE`), such as Django.
//!
//! Such an origin writes a token into each form and compares it with a cookie. A shared page has one form for all
//! visitors, so its token cannot match a cookie of each visitor. Therefore edgefront takes the protection over:
//! - The origin gets the same cookie value from all visitors, so the token of a page is valid for each of them.
//! - A request that changes something carries this cookie only if the browser proves that the same site sent it, by
//!   `Sec-Fetch-Site`, `Origin` or `Referer` (OWASP, Cross-Site Request Forgery Prevention, "Verifying Origin With
//!   Standard Headers"). The origin refuses every other such request, because its cookie is missing.
//!
//! The value is no secret: each page contains it. The proof protects the visitor, not the value.

use http::{HeaderMap, HeaderValue, Uri, header};
use url::Url;

use super::{cookies, set_cookie::SetCookie};

/// The value of the cookie: 32 letters and digits, the form of Django's `csrftoken`.
const VALUE: &str = "edgefrontverifiestheoriginheader";

/// Adds the cookie to the `Cookie` header of a shared render.
pub fn add(headers: &mut HeaderMap, name: &str) {
    cookies::add(headers, format!("{name}={VALUE}").as_bytes());
}

/// Replaces the visitor's cookie before the request goes to the origin. `uri` is the absolute URI that the visitor
/// requested.
pub fn protect(headers: &mut HeaderMap, name: &str, uri: &Uri, is_safe: bool) {
    cookies::remove(headers, name);
    if is_safe {
        add(headers, name);
    } else if is_from_own_page(uri, headers) {
        add(headers, name);
        // edgefront has checked `Origin`. The origin would compare it with its own address, not with edgefront's.
        headers.remove(header::ORIGIN);
    }
}

/// Gives each `Set-Cookie` of this name the common value, so that scripts that read the cookie send a valid token.
pub fn replace_set_cookie(headers: &mut HeaderMap, name: &str) {
    let header::Entry::Occupied(mut lines) = headers.entry(header::SET_COOKIE) else { return };
    for line in lines.iter_mut() {
        let replaced = SetCookie::of_ascii(line).and_then(|cookie| {
            // An empty value deletes the cookie.
            let has_value = cookie.name() == name && !cookie.value()?.is_empty();
            has_value.then(|| format!("{name}={VALUE};{}", cookie.attributes()))
        });
        if let Some(Ok(replaced)) = replaced.map(HeaderValue::try_from) {
            *line = replaced;
        }
    }
}

/// Returns whether the request proves that a page of this origin sent it.
#[must_use]
pub fn is_from_own_page(uri: &Uri, headers: &HeaderMap) -> bool {
    is_same_origin(uri, headers).unwrap_or_else(|| has_own_referer(uri, headers))
}

/// Returns whether a page of this origin sent the request; None if the request does not say it.
///
/// The browser sets `Sec-Fetch-Site`, and no script can. `none` (the address bar, a bookmark) never comes with an unsafe
/// method, so it counts like `same-site` and `cross-site`. A browser without `Sec-Fetch-Site` sends `Origin`. A repeated
/// header proves nothing.
#[must_use]
pub fn is_same_origin(uri: &Uri, headers: &HeaderMap) -> Option<bool> {
    let sites = headers.get_all("sec-fetch-site");
    if sites.iter().next().is_some() {
        return Some(sites.iter().eq(["same-origin"]));
    }
    let origins = headers.get_all(header::ORIGIN);
    origins.iter().next()?;
    let own = Url::parse(&uri.to_string()).map(|url| url.origin());
    Some(own.is_ok_and(|own| own.is_tuple() && origins.iter().eq([&own.ascii_serialization()])))
}

/// Returns whether another site sent the request. With such a request, the browser sends no `SameSite=Lax` cookie, unless it
/// follows a link.
///
/// With `Sec-Fetch-Site`, other hosts of the same site do not count. A browser without it names the sender's host in `Origin`, and
/// each other host counts. `null` names none: with `Referrer-Policy: no-referrer`, the shop's own forms send it. Apps and
/// services send neither header.
#[must_use]
pub fn is_cross_site(uri: &Uri, headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "cross-site";
    }
    let origin = headers.get(header::ORIGIN).and_then(|origin| Url::parse(origin.to_str().ok()?).ok());
    let is_own = |host: &str| uri.host().is_some_and(|own| own.eq_ignore_ascii_case(host));
    origin.as_ref().and_then(Url::host_str).is_some_and(|host| !is_own(host))
}

/// Returns whether the browser says that the request is no top-level navigation: an image, a frame or a `fetch`. False without
/// these headers.
pub fn is_subrequest(headers: &HeaderMap) -> bool {
    let is_other = |name, link: &str| headers.get(name).is_some_and(|value| value != link);
    is_other("sec-fetch-mode", "navigate") || is_other("sec-fetch-dest", "document")
}

/// Returns whether the request proves by `Referer` that a page of this origin sent it.
fn has_own_referer(uri: &Uri, headers: &HeaderMap) -> bool {
    let origin = |text: &str| Url::parse(text).map(|url| url.origin());
    let mut referers = headers.get_all(header::REFERER).iter();
    let (Some(referer), None, Ok(own)) = (referers.next(), referers.next(), origin(&uri.to_string())) else {
        return false;
    };
    referer.to_str().is_ok_and(|referer| origin(referer) == Ok(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    /// The `Cookie` header that the origin gets with a request for `https://shop.example/basket`.
    fn cookies(is_safe: bool, lines: &[(&'static str, &'static str)]) -> String {
        let mut headers = headers(lines);
        protect(&mut headers, "csrftoken", &Uri::from_static("https://shop.example/basket"), is_safe);
        headers.get(header::COOKIE).map(|value| value.to_str().unwrap().replace(VALUE, "<common>")).unwrap_or_default()
    }

    #[test]
    fn every_safe_request_carries_the_common_value() {
        assert_eq!(cookies(true, &[]), "csrftoken=<common>");
        assert_eq!(cookies(true, &[("cookie", "a=b; csrftoken=mine; c=d")]), "a=b; c=d; csrftoken=<common>");
        assert_eq!(cookies(true, &[("sec-fetch-site", "cross-site")]), "csrftoken=<common>");
    }

    #[test]
    fn an_unsafe_request_carries_it_only_from_the_same_site() {
        for (lines, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-site"), ("origin", "https://shop.example")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("origin", "https://shop.example")], true),
            (&[("origin", "http://shop.example")], false),
            (&[("origin", "https://shop.example.evil")], false),
            (&[("origin", "null"), ("referer", "https://shop.example/")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
            (&[("origin", "https://shop.example"), ("origin", "https://evil.example")], false),
            (&[("referer", "https://shop.example/"), ("referer", "https://evil.example/")], false),
            (&[("referer", "https://shop.example/catalogue/mug")], true),
            (&[("referer", "https://evil.example/https://shop.example/")], false),
            (&[], false),
        ] {
            let cookies = cookies(false, &[lines, &[("cookie", "csrftoken=forged")]].concat());
            assert_eq!(cookies, if expected { "csrftoken=<common>" } else { "" }, "{lines:?}");
        }
    }

    #[test]
    fn the_origins_cookie_gets_the_common_value() {
        let mut lines = headers(&[("set-cookie", "csrftoken=secret; Path=/; SameSite=Lax"), ("set-cookie", "a=b")]);
        replace_set_cookie(&mut lines, "csrftoken");
        let lines: Vec<_> = lines.get_all("set-cookie").iter().map(|line| line.to_str().unwrap()).collect();
        assert_eq!(lines, [&format!("csrftoken={VALUE}; Path=/; SameSite=Lax"), "a=b"]);
        let mut deleted = headers(&[("set-cookie", "csrftoken=; Max-Age=0")]);
        replace_set_cookie(&mut deleted, "csrftoken");
        assert_eq!(deleted.get("set-cookie").unwrap(), "csrftoken=; Max-Age=0");
    }
}
