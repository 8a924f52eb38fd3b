//! The cookies of the origin: changes of the `Cookie` header of a request, and the names in `Set-Cookie`.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderValue,
    header::{self, Entry},
};

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

/// The name in a `Set-Cookie` (RFC 6265 §5.2).
#[must_use]
pub fn cookie_name(line: &HeaderValue) -> String {
    let line = String::from_utf8_lossy(line.as_bytes());
    line.split(['=', ';']).next().unwrap_or_default().trim().to_owned()
}

/// Name and value of a `Set-Cookie`. None without `=`, or with other bytes than visible ASCII.
#[must_use]
pub fn set_cookie_pair(line: &HeaderValue) -> Option<(String, String)> {
    let (name, value) = line.to_str().ok()?.split(';').next()?.split_once('=')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// Moves a `Set-Cookie` line from the response for `path` to another response. Without a valid `Path`, the line gets the browser's
/// default path (RFC 6265 §5.1.4, §5.2.4).
#[must_use]
pub fn at_path(line: &HeaderValue, path: &str) -> HeaderValue {
    let text = String::from_utf8_lossy(line.as_bytes());
    // The last one counts.
    if text.split(';').skip(1).filter_map(path_of).last().is_some_and(|path| path.starts_with('/')) {
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
    let line = String::from_utf8_lossy(line.as_bytes());
    let (pair, attributes) = line.split_once(';').unwrap_or((&line, ""));
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    remove(headers, name.trim());
    if !is_deletion(value, attributes) {
        add(headers, format!("{}={}", name.trim(), value.trim()).as_bytes());
    }
}

/// Returns whether a `Set-Cookie` deletes its cookie. Servers do that by an empty value, `Max-Age=0` or a negative one, or the first
/// day of Unix time.
#[must_use]
pub fn is_deletion(value: &str, attributes: &str) -> bool {
    let attributes = attributes.to_ascii_lowercase();
    let deletes = |attribute: &str| {
        let (name, text) = attribute.split_once('=').unwrap_or((attribute, ""));
        match name.trim() {
            "max-age" => text.trim().starts_with(['0', '-']),
            "expires" => text.contains("1970"),
            _ => false,
        }
    };
    value.trim().is_empty() || attributes.split(';').any(deletes)
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
}
