//! `Cache-Control` (RFC 9111 §5.2). A malformed directive gets its most restrictive reading (§4.2.1).

use http::{HeaderMap, header};

use super::targeted;

/// The directives of all `Cache-Control` lines of a message, in order: name in lower case, argument without quotes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    directives: Vec<(String, Option<String>)>,
    targeted: bool,
}

impl CacheControl {
    /// No directives, in place of those of the response and its `Expires`.
    pub const REPLACED: Self = Self { directives: Vec::new(), targeted: true };

    /// Reads the message's lines. Invalid UTF-8 hides no restrictive directive, and any other only if it stands in it.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::CACHE_CONTROL).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        let directives = lines.flat_map(|line| members(&line)).flat_map(|member| directives(&member)).collect();
        Self { directives, targeted: false }
    }

    /// The directives of a response: from `CDN-Cache-Control` if it counts, else from `Cache-Control` (RFC 9213 §2.2).
    #[must_use]
    pub fn of_response(headers: &HeaderMap) -> Self {
        match targeted::read(headers) {
            Some(directives) => Self { directives, targeted: true },
            None => Self::of(headers),
        }
    }

    /// Returns whether the directives come from `CDN-Cache-Control`.
    #[must_use]
    pub const fn is_targeted(&self) -> bool {
        self.targeted
    }

    /// Returns whether the response is declared shared: the origin addresses shared caches, and does not forbid them to store
    /// it. `max-age` alone does not: it addresses the visitor's browser, too, and many applications add it to every response.
    #[must_use]
    pub fn is_declared_shared(&self) -> bool {
        let is_forbidden = || self.has("private") || self.has("no-store");
        self.targeted || (self.has("public") || self.has("s-maxage")) && !is_forbidden()
    }

    /// Returns whether the message has no directive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.directives.is_empty()
    }

    /// Returns whether the directive is present, with or without an argument: `private="x-a"` counts as `private`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.directives.iter().any(|(own, _)| own == name)
    }

    /// Returns whether the request wants the origin to validate a stored response (§5.2.1.4, §5.4).
    #[must_use]
    pub fn wants_validation(&self, headers: &HeaderMap) -> bool {
        let pragma = self.is_empty() && headers.get(header::PRAGMA).is_some_and(|value| value == "no-cache");
        self.has("no-cache") || pragma
    }

    /// The seconds of a request's `max-stale`; unlimited without an argument (§5.2.1.2).
    #[must_use]
    pub fn max_stale(&self) -> Option<u64> {
        let (_, argument) = self.directives.iter().find(|(own, _)| own == "max-stale")?;
        Some(argument.as_deref().map_or(u64::MAX, delta_seconds))
    }

    /// A directive's seconds; the least if it is repeated. An invalid number counts as 0: a needless revalidation is
    /// slow, but not wrong. A number above 2^31 counts as 2^31 (§1.2.2).
    #[must_use]
    pub fn seconds(&self, name: &str) -> Option<u64> {
        let arguments = self.directives.iter().filter(|(own, _)| own == name).map(|(_, argument)| argument.as_deref());
        arguments.map(|argument| argument.map_or(0, delta_seconds)).min()
    }
}

/// RFC 9111 §1.2.2.
fn delta_seconds(text: &str) -> u64 {
    const MAX: u64 = 1 << 31;
    match text {
        "" => 0,
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().unwrap_or(MAX).min(MAX),
        _ => 0,
    }
}

/// The members of a comma-separated list. A quoted comma does not separate, unless the quote is never closed.
fn members(line: &str) -> Vec<String> {
    let (mut members, mut quoted, mut escaped) = (vec![String::new()], false, false);
    for character in line.chars() {
        match character {
            ',' if !quoted => members.push(String::new()),
            _ => {
                if character == '"' && !escaped {
                    quoted = !quoted;
                }
                escaped = quoted && character == '\\' && !escaped;
                members.iter_mut().last().into_iter().for_each(|member| member.push(character));
            }
        }
    }
    if quoted { line.split(',').map(str::to_owned).collect() } else { members }
}

/// Directives that restrict a cache.
const RESTRICTIVE: [&str; 5] = ["private", "no-store", "no-cache", "must-revalidate", "proxy-revalidate"];

/// Returns whether a character ends a word: it is in the name of no known directive. U+00A0, U+200B and typographic quotes come
/// from copied text, and U+FFFD stands for invalid UTF-8.
const fn separates(character: char) -> bool {
    !(character.is_ascii_alphanumeric() || matches!(character, '-' | '_'))
}

/// The directive of a member. A malformed member, such as `no-store; max-age=0`, also has the restrictive directives
/// among its words.
fn directives(member: &str) -> Vec<(String, Option<String>)> {
    let member = member.to_ascii_lowercase();
    let (name, argument) = member.split_once('=').map_or((&*member, None), |(name, text)| (name, Some(text.trim())));
    let name = name.trim();
    let is_quoted = |text: &str| text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    let is_malformed = |text: &str| text.contains(separates) && !is_quoted(text);
    let mut directives = Vec::new();
    if !name.is_empty() {
        directives.push((name.to_owned(), argument.map(|text| text.trim_matches('"').to_owned())));
    }
    if name.is_empty() || name.contains(separates) || argument.is_some_and(is_malformed) {
        let words = member.split(separates).filter(|word| RESTRICTIVE.contains(word));
        directives.extend(words.map(|word| (word.to_owned(), None)));
    }
    directives
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(lines: &[&'static str]) -> CacheControl {
        let line = |line: &&'static str| (header::CACHE_CONTROL, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        CacheControl::of(&lines.iter().map(line).collect())
    }

    #[test]
    fn names_are_case_insensitive_and_lists_may_be_empty() {
        let control = read(&["Max-Age=60, , PRIVATE=\"set-cookie, x-a\"", "s-maxage=\"30\""]);
        assert!(control.has("private") && control.has("max-age") && !control.has("x-a"));
        assert_eq!((control.seconds("max-age"), control.seconds("s-maxage")), (Some(60), Some(30)));
        assert!(read(&[]).is_empty() && read(&[" ,"]).is_empty());
    }

    #[test]
    fn invalid_seconds_mean_stale() {
        for (line, seconds) in [
            ("max-age", 0),
            ("max-age=", 0),
            ("max-age=-1", 0),
            ("max-age=1.5", 0),
            ("max-age=60, max-age=30", 30),
            ("max-age=99999999999999999999", 1 << 31),
        ] {
            assert_eq!(read(&[line]).seconds("max-age"), Some(seconds), "{line}");
        }
        assert_eq!(read(&["no-cache"]).seconds("max-age"), None);
    }

    #[test]
    fn malformed_text_hides_no_directive() {
        assert!(read(&[r#"max-age=60, ext="a, no-store"#]).has("no-store"), "the quote never ends");
        let line = HeaderValue::from_bytes("private, ext=\"ü\"".as_bytes()).unwrap();
        assert!(CacheControl::of(&[(header::CACHE_CONTROL, line)].into_iter().collect()).has("private"));
    }

    #[test]
    fn a_wrong_separator_hides_no_restriction() {
        for line in [
            "no-store; max-age=60",
            "public; no-store",
            "max-age=60 no-store",
            "s-maxage=60, max-age=60; no-store",
            "\"no-store\"",
            "=no-store",
            "no-store;",
            "max-age=60, \"no-store",
        ] {
            assert!(read(&[line]).has("no-store"), "{line}");
        }
        assert!(!read(&["no-store-x; max-age=60"]).has("no-store"));
        assert_eq!(read(&["ext; max-age=60"]).seconds("max-age"), None, "a malformed member gives no freshness");
    }

    #[test]
    fn copied_text_hides_no_restriction() {
        for line in [
            "\u{a0}private, max-age=60",
            "public,\u{200b}private, max-age=60",
            "\u{feff}private, max-age=60",
            "public\u{a0}private, max-age=60",
            "\u{201c}private\u{201d}, max-age=60",
            "'private', max-age=60",
            "max-age=60,\u{2028}private",
        ] {
            assert!(read(&[line]).has("private"), "{line:?}");
        }
        let latin1 = HeaderValue::from_bytes(b"\xa0private, max-age=60").unwrap();
        assert!(CacheControl::of(&[(header::CACHE_CONTROL, latin1)].into_iter().collect()).has("private"));
    }

    #[test]
    fn quotes_hide_commas_and_directives() {
        let control = read(&[r#"ext="a\", no-store, b", max-age=1"#]);
        assert!(!control.has("no-store"));
        assert_eq!(control.seconds("max-age"), Some(1));
    }
}
