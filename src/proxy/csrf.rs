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

use crate::config::rules::is_token_byte;

/// The value of the cookie: 32 letters and digits, the form of Django's `csrftoken`.
const VALUE: &str = "edgefrontverifiestheoriginheader";

/// Adds the cookie to the `Cookie` header of a shared render.
pub fn add(headers: &mut HeaderMap, name: &str) {
    add_pair(headers, format!("{name}={VALUE}").as_bytes());
}

fn add_pair(headers: &mut HeaderMap, pair: &[u8]) {
    let cookies = match headers.get(header::COOKIE) {
        Some(cookies) => [cookies.as_bytes(), pair].join(b"; ".as_slice()),
        None => pair.to_vec(),
    };
    if let Ok(cookies) = HeaderValue::try_from(cookies) {
        headers.insert(header::COOKIE, cookies);
    }
}

/// Adds the cookie of a `Set-Cookie` line to a request, or removes it, as a browser does before its next request. Of the
/// attributes, only those that delete a cookie count.
pub fn apply_set_cookie(headers: &mut HeaderMap, line: &HeaderValue) {
    let line = String::from_utf8_lossy(line.as_bytes());
    let (pair, attributes) = line.split_once(';').unwrap_or((&line, ""));
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    remove(headers, name.trim());
    // Servers delete a cookie by an empty value, `Max-Age=0`, or the first day of Unix time.
    let attributes = attributes.to_ascii_lowercase();
    let is_deleted = value.trim().is_empty() || attributes.contains("max-age=0") || attributes.contains("1970");
    if !is_deleted {
        add_pair(headers, format!("{}={}", name.trim(), value.trim()).as_bytes());
    }
}

fn remove(headers: &mut HeaderMap, name: &str) {
    let lines: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookies = HeaderValue::try_from(lines.join(b"; ".as_slice()));
    let others = cookies.ok().and_then(|cookies| without(&cookies, name));
    headers.remove(header::COOKIE);
    headers.extend(others.map(|others| (header::COOKIE, others)));
}

/// Replaces the visitor's cookie before the request goes to the origin. `uri` is the absolute URI that the visitor
/// requested.
pub fn protect(headers: &mut HeaderMap, name: &str, uri: &Uri, is_safe: bool) {
    remove(headers, name);
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
        if let Some(replaced) = with_common_value(line, name) {
            *line = replaced;
        }
    }
}

/// A `Set-Cookie` of this name with the common value. None for another name, and if it deletes the cookie.
fn with_common_value(line: &HeaderValue, name: &str) -> Option<HeaderValue> {
    let text = line.to_str().ok()?;
    let (pair, attributes) = text.split_once(';').unwrap_or((text, ""));
    let (own, value) = pair.split_once('=')?;
    let is_set = own.trim() == name && !value.trim().is_empty();
    is_set.then(|| HeaderValue::try_from(format!("{name}={VALUE};{attributes}")).ok())?
}

/// The cookies of a `Cookie` header except `name`. Origins strip more than ASCII white space from a name, so bytes around
/// it that no cookie name may have do not make it another name (RFC 6265 §4.1.1). PHP reads a blank, `.` and `[` in a name
/// as `_`.
fn without(cookies: &HeaderValue, name: &str) -> Option<HeaderValue> {
    let is_token = |byte: &u8| is_token_byte(*byte);
    let is_other = |cookie: &&[u8]| {
        let own = cookie.split(|byte| *byte == b'=').next().unwrap_or_default();
        let begin = own.iter().position(is_token).unwrap_or(own.len());
        let end = own.iter().rposition(is_token).map_or(begin, |last| last + 1);
        let folded = |byte: &u8| if b" .[".contains(byte) { b'_' } else { *byte };
        !cookie.is_empty()
            && !own.get(begin..end).is_some_and(|own| own.iter().map(folded).eq(name.bytes().map(|byte| folded(&byte))))
    };
    let others: Vec<_> =
        cookies.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(is_other).collect();
    (!others.is_empty()).then(|| HeaderValue::from_bytes(&others.join(b"; ".as_slice())).ok())?
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
    fn no_spelling_of_the_cookie_reaches_the_origin_without_proof() {
        for name in ["csrftoken", "csrftoken ", "\tcsrftoken", "\u{a0}csrftoken", "csrftoken\u{2003}", "\"csrftoken\""]
        {
            let cookie = HeaderValue::from_bytes(format!("a=b; {name}={VALUE}").as_bytes()).unwrap();
            assert_eq!(without(&cookie, "csrftoken").unwrap(), "a=b", "{name}");
        }
        for name in ["csrf_token", "csrf.token", "csrf token", "csrf[token"] {
            let cookie = HeaderValue::from_str(&format!("a=b; {name}={VALUE}")).unwrap();
            assert_eq!(without(&cookie, "csrf_token").unwrap(), "a=b", "{name}");
        }
        let others = HeaderValue::from_static("csrftoken2=1; xcsrftoken=2; foo[bar]=3");
        assert_eq!(without(&others, "csrftoken").unwrap(), others);
    }

    #[test]
    fn a_set_cookie_changes_the_next_request() {
        let mut headers = headers(&[("cookie", "a=1; sid=old; c=2; d=4"), ("cookie", "b=2")]);
        let deleted = "d=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0";
        for line in ["sid=new; Path=/; Max-Age=60", "c = 3", "a=; Path=/", deleted] {
            apply_set_cookie(&mut headers, &HeaderValue::from_static(line));
        }
        assert_eq!(headers.get("cookie").unwrap(), "b=2; sid=new; c=3");
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
