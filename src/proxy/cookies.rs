//! The cookies of the origin: changes of the `Cookie` header of a request, and the names in `Set-Cookie`.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderValue,
    header::{self, Entry},
};

use super::set_cookie::SetCookie;
use crate::config::rules::is_token_byte;

/// Adds a cookie, as `name=value`.
pub fn add(headers: &mut HeaderMap, pair: &[u8]) {
    let cookies = match headers.get(header::COOKIE) {
        Some(cookies) => [cookies.as_bytes(), pair].join(b"; ".as_slice()),
        None => pair.to_vec(),
    };
    if let Ok(cookies) = HeaderValue::try_from(cookies) {
        headers.insert(header::COOKIE, cookies);
    }
}

/// Removes a cookie in every spelling.
pub fn remove(headers: &mut HeaderMap, name: &str) {
    let lines: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookies = HeaderValue::try_from(lines.join(b"; ".as_slice()));
    let others = cookies.ok().and_then(|cookies| without(&cookies, name));
    headers.remove(header::COOKIE);
    if let Some(others) = others {
        headers.insert(header::COOKIE, others);
    }
}

/// The name in a `Set-Cookie` line.
#[must_use]
pub fn cookie_name(line: &HeaderValue) -> String {
    SetCookie::of(line).name()
}

/// Name and value of a `Set-Cookie`. None without `=`, or with other bytes than visible ASCII.
#[must_use]
pub fn set_cookie_pair(line: &HeaderValue) -> Option<(String, String)> {
    let cookie = SetCookie::of_ascii(line)?;
    Some((cookie.name(), cookie.value()?))
}

/// Moves a `Set-Cookie` line from the response for `path` to another response. Without a valid `Path`, the line gets the browser's
/// default path (RFC 6265 §5.1.4, §5.2.4).
#[must_use]
pub fn at_path(line: &HeaderValue, path: &str) -> HeaderValue {
    let attributes = SetCookie::of(line).attributes();
    // The last one counts.
    if attributes.split(';').filter_map(path_of).next_back().is_some_and(|path| path.starts_with('/')) {
        return line.clone();
    }
    // A semicolon would end the attribute.
    let expressible = path.split(';').next().unwrap_or_default();
    let directory =
        expressible.rsplit_once('/').map(|(directory, _)| directory).filter(|directory| !directory.is_empty());
    let with_path = [line.as_bytes(), b"; Path=", directory.unwrap_or("/").as_bytes()].concat();
    HeaderValue::try_from(with_path).unwrap_or_else(|_| line.clone())
}

/// Moves the `Path` of the origin's cookies from below `prefix`, the path of `ORIGIN_URL`, to the same path at edgefront.
pub(super) fn rewrite_paths(headers: &mut HeaderMap, prefix: &str) {
    if let Entry::Occupied(mut lines) = headers.entry(header::SET_COOKIE) {
        lines.iter_mut().for_each(|line| *line = without_prefix(line, prefix));
    }
}

fn without_prefix(line: &HeaderValue, prefix: &str) -> HeaderValue {
    let Ok(text) = str::from_utf8(line.as_bytes()) else { return line.clone() };
    let moved = |attribute: &str| match path_of(attribute)?.strip_prefix(prefix)? {
        "" => Some(" Path=/".to_owned()),
        below => below.starts_with('/').then(|| format!(" Path={below}")),
    };
    let mut attributes = text.split(';');
    let pair = attributes.next().map(Cow::Borrowed);
    let attributes = attributes.map(|attribute| moved(attribute).map_or(Cow::Borrowed(attribute), Cow::Owned));
    let parts: Vec<_> = pair.into_iter().chain(attributes).collect();
    HeaderValue::try_from(parts.join(";")).unwrap_or_else(|_| line.clone())
}

/// The value of the attribute `Path`. None for another attribute.
fn path_of(attribute: &str) -> Option<&str> {
    let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
    name.trim().eq_ignore_ascii_case("path").then(|| value.trim())
}

/// Adds the cookie of a `Set-Cookie` line to a request, or removes it, as a browser does before its next request. Of the
/// attributes, only those that delete a cookie count.
pub fn apply_set_cookie(headers: &mut HeaderMap, line: &HeaderValue) {
    let cookie = SetCookie::of(line);
    let name = cookie.name();
    remove(headers, &name);
    if !cookie.is_deletion() {
        add(headers, [&name, "=", &cookie.value().unwrap_or_default()].concat().as_bytes());
    }
}

/// The cookies of a `Cookie` header except `name`. Origins strip more than ASCII white space from a name. So bytes
/// around a name that no cookie name may have do not count (RFC 6265 §4.1.1). PHP reads a blank, `.` and `[` in a name
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::csrf::replace_set_cookie;

    #[test]
    fn no_spelling_of_a_cookie_remains() {
        for name in ["csrftoken", "csrftoken ", "\tcsrftoken", "\u{a0}csrftoken", "csrftoken\u{2003}", "\"csrftoken\""]
        {
            let cookie = HeaderValue::from_bytes(format!("a=b; {name}=1").as_bytes()).unwrap();
            assert_eq!(without(&cookie, "csrftoken").unwrap(), "a=b", "{name}");
        }
        for name in ["csrf_token", "csrf.token", "csrf token", "csrf[token"] {
            let cookie = HeaderValue::from_str(&format!("a=b; {name}=1")).unwrap();
            assert_eq!(without(&cookie, "csrf_token").unwrap(), "a=b", "{name}");
        }
        let others = HeaderValue::from_static("csrftoken2=1; xcsrftoken=2; foo[bar]=3");
        assert_eq!(without(&others, "csrftoken").unwrap(), others);
    }

    #[test]
    fn a_cookie_without_a_path_gets_that_of_its_request() {
        for (line, path, added) in [
            ("a=1", "/products/mug", "/products"),
            ("a=1; HttpOnly", "/products/", "/products"),
            ("a=1", "/a/b/c", "/a/b"),
            ("a=1", "/", "/"),
            ("a=1", "/mug", "/"),
            ("a=1", "*", "/"),
            ("a=1; Path=", "/products/mug", "/products"),
            ("a=1; Path", "/products/mug", "/products"),
            ("a=1; path=products", "/products/mug", "/products"),
            ("a=1; Path=/; Path=x", "/products/mug", "/products"),
            ("a=1", "/products;x=1/mug", "/"),
            ("path=/", "/products/mug", "/products"),
            ("a=1; Path=/", "/products/mug", ""),
            ("a=1;PATH = /b ;Secure", "/products/mug", ""),
            ("a=1; Path=x; Path=/b", "/products/mug", ""),
        ] {
            let expected = if added.is_empty() { line.to_owned() } else { format!("{line}; Path={added}") };
            assert_eq!(at_path(&HeaderValue::from_static(line), path), expected, "{line} of {path}");
        }
    }

    #[test]
    fn a_set_cookie_changes_the_next_request() {
        let mut headers = HeaderMap::new();
        for line in ["a=1; sid=old; c=2; d=4", "b=2"] {
            headers.append(header::COOKIE, HeaderValue::from_static(line));
        }
        let deleted = "d=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0";
        for line in ["sid=new; Path=/poster_1970; Max-Age=60", "c = 3", "a=; Path=/", deleted] {
            apply_set_cookie(&mut headers, &HeaderValue::from_static(line));
        }
        assert_eq!(headers.get("cookie").unwrap(), "b=2; sid=new; c=3");
    }

    #[test]
    fn the_path_of_a_cookie_leaves_the_path_of_the_origin() {
        for (line, moved) in [
            ("a=b; Path=/shop; Secure", "a=b; Path=/; Secure"),
            ("a=b;path = /shop/cart", "a=b; Path=/cart"),
            ("a=b; Path=/shop/", "a=b; Path=/"),
            ("a=b; Path=/shopping", "a=b; Path=/shopping"),
            ("a=b; Path=/", "a=b; Path=/"),
            ("a=b; HttpOnly", "a=b; HttpOnly"),
            ("path=/shop", "path=/shop"),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(header::SET_COOKIE, line.parse().unwrap());
            rewrite_paths(&mut headers, "/shop");
            assert_eq!(headers[header::SET_COOKIE], moved);
        }
    }

    /// A name without UTF-8 is read with U+FFFD. A line that is not ASCII has no pair, and is never replaced.
    #[test]
    fn a_line_that_is_not_ascii_has_a_name_and_no_pair() {
        for (line, name, pair, sent, replaced) in [
            (&b"csrftoken=1; Path=/"[..], "csrftoken", Some(("csrftoken", "1")), "a=1; csrftoken=1", true),
            (b"csrftoken = 1", "csrftoken", Some(("csrftoken", "1")), "a=1; csrftoken=1", true),
            (b"csrftoken=\xe9; Path=/", "csrftoken", None, "a=1; csrftoken=\u{fffd}", false),
            ("csrftoken=1; Path=/caf\u{e9}".as_bytes(), "csrftoken", None, "a=1; csrftoken=1", false),
            ("\u{2003}csrftoken=1".as_bytes(), "csrftoken", None, "a=1; csrftoken=1", false),
            (b"caf\xe9=1", "caf\u{fffd}", None, "a=1; caf\u{fffd}=1", false),
            (b"a", "a", None, "", false),
            (b"a; b=1", "a", None, "", false),
        ] {
            let line = HeaderValue::from_bytes(line).unwrap();
            assert_eq!(cookie_name(&line), name, "{line:?}");
            let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(set_cookie_pair(&line), pair, "{line:?}");
            let mut headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("a=1"))]);
            apply_set_cookie(&mut headers, &line);
            let cookies =
                headers.get(header::COOKIE).map(|cookies| String::from_utf8_lossy(cookies.as_bytes()).into_owned());
            assert_eq!(cookies.unwrap_or_default(), sent, "{line:?}");
            let mut lines = HeaderMap::from_iter([(header::SET_COOKIE, line.clone())]);
            replace_set_cookie(&mut lines, "csrftoken");
            assert_eq!(lines[header::SET_COOKIE] != line, replaced, "{line:?}");
        }
    }
}
