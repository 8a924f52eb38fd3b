//! `CDN-Cache-Control` (RFC 9213): directives for the caches of the origin's own network, which includes edgefront. A
//! well-formed `CDN-Cache-Control` replaces `Cache-Control` and `Expires`.
//!
//! The field is a Structured Field dictionary (RFC 9651 §3.2): one syntax error voids all of it.

use http::HeaderMap;
use sfparse::{Parser, Value};

/// The directives of a well-formed, non-empty `CDN-Cache-Control`: key, and the value of an integer or a token. None if
/// the field is absent or does not count.
pub(super) fn read(headers: &HeaderMap) -> Option<Vec<(String, Option<String>)>> {
    let lines: Vec<_> = headers.get_all("cdn-cache-control").iter().map(http::HeaderValue::as_bytes).collect();
    let text = lines.join(&b","[..]);
    let mut parser = Parser::new(&text);
    let mut members: Vec<(String, Option<String>)> = Vec::new();
    while let Some((key, value)) = parser.parse_dict().ok()? {
        let value = match value {
            Value::Integer(number) => Some(number.to_string()),
            Value::Token(range) => Some(String::from_utf8_lossy(text.get(range)?).into_owned()),
            _ => None,
        };
        // The last of several members with one key counts (RFC 9651 §4.2.2).
        members.retain(|(other, _)| other != key);
        members.push((key.to_owned(), value));
    }
    (!members.is_empty() && members.iter().all(has_valid_type)).then_some(members)
}

/// Returns whether a duration is a non-negative integer (RFC 9213 §2.1).
fn has_valid_type((key, value): &(String, Option<String>)) -> bool {
    let is_duration = matches!(key.as_str(), "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error");
    !is_duration || value.as_ref().is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn directives(lines: &[&'static str]) -> Option<String> {
        let line = |line: &&'static str| ("cdn-cache-control".parse().unwrap(), HeaderValue::from_static(line));
        let members = read(&lines.iter().map(line).collect())?;
        let text = members.into_iter().map(|(key, value)| value.map_or(key.clone(), |value| format!("{key}={value}")));
        Some(text.collect::<Vec<_>>().join(" "))
    }

    // RFC 9213 §2.1
    #[test]
    fn the_field_is_a_dictionary() {
        for (lines, read) in [
            (&["max-age=60"][..], "max-age=60"),
            (&["max-age=60, no-cache"], "max-age=60 no-cache"),
            (&["max-age=60", "private"], "max-age=60 private"),
            (&["max-age=60;a=1;b, x=(1 \"two\" three);q"], "max-age=60 x"),
            (&["x=\"a, no-store\", y=:YQ==:, z=?1, max-age=1"], "x y z max-age=1"),
            (&["max-age=60 ,\tmax-age=5"], "max-age=5"),
        ] {
            assert_eq!(directives(lines).as_deref(), Some(read), "{lines:?}");
        }
    }

    #[test]
    fn a_malformed_field_does_not_count() {
        for line in [
            "",
            " ",
            "MaX-aGe=60",
            "max-age =60",
            "max-age= 60",
            "max-age=60,",
            "max-age=60, &&&&&",
            "max-age=\"60\"",
            "max-age",
            "max-age=-1",
            "max-age=1.5",
            "no-store, x=\"open",
            "x=(1 2",
            "x=--1",
            "x=1.",
            "x=?2",
            "x=:Y:Q:",
            "max-age=99999999999999999999",
        ] {
            assert_eq!(directives(&[line]), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_without_a_panic(line in "[ -~]{0,40}") {
            let headers = [("cdn-cache-control".parse().unwrap(), HeaderValue::try_from(line).unwrap())];
            read(&headers.into_iter().collect());
        }
    }
}
