//! Placeholders: the values of tokens in stored pages.
//!
//! A token belongs to a session, so no visitor can use the token of a shared render. A stored page has a placeholder
//! instead. The placeholder names the page and the element. In an unsafe request, edgefront replaces it with the visitor's
//! own token: see `execute::tokens`.
//!
//! ```text
//! edgefront-token-<base64url of "<index> <selector>\n<path and query>">
//! ```
//!
//! Its characters need no escapes in HTML, forms, JSON and headers.

use std::ops::Range;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

const START: &str = "edgefront-token-";

/// The place of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Path and query of the page.
    pub page: String,
    pub selector: String,
    /// The index among the elements of the page that match the selector.
    pub index: usize,
}

impl Placeholder {
    #[must_use]
    pub fn encode(&self) -> String {
        let Self { page, selector, index } = self;
        let mut text = START.to_owned();
        URL_SAFE_NO_PAD.encode_string(format!("{index} {selector}\n{page}"), &mut text);
        text
    }

    /// The placeholder that is all of `text`.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        let place = String::from_utf8(URL_SAFE_NO_PAD.decode(text.strip_prefix(START.as_bytes())?).ok()?).ok()?;
        let (element, page) = place.split_once('\n')?;
        let (index, selector) = element.split_once(' ')?;
        let index = index.parse().ok()?;
        let is_page = page.starts_with('/') && !page.contains('#');
        is_page.then(|| Self { page: page.to_owned(), selector: selector.to_owned(), index })
    }

    /// The first placeholder in a body, from `at` on, with its range. It must be the whole value of a field of a form or of JSON, or
    /// of a part of a multipart body. So a text of a visitor that mentions one stays as it is.
    #[must_use]
    pub fn find(text: &[u8], mut at: usize) -> Option<(Range<usize>, Self)> {
        loop {
            let start = at + position(text.get(at..)?)?;
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
            at = start + text.iter().skip(start).take_while(|byte| is_part(byte)).count();
            let before = start.checked_sub(1).and_then(|before| text.get(before));
            let is_whole = matches!(before, None | Some(b'=' | b'"' | b'\n'))
                && matches!(text.get(at), None | Some(b'&' | b'"' | b'\r' | b'\n'));
            if is_whole && let Some(placeholder) = text.get(start..at).and_then(Self::decode) {
                return Some((start..at, placeholder));
            }
        }
    }
}

/// The index of the first [`START`] in `text`.
fn position(text: &[u8]) -> Option<usize> {
    text.windows(START.len()).position(|window| window == START.as_bytes())
}

/// The range of a token in its element, which begins with its start tag: the `value` of a hidden `input`, or the `content` of a
/// `meta`. None for another element, and for an empty attribute. (HTML Standard, §13.2.5.32 to §13.2.5.38.)
#[must_use]
pub fn token_range(element: &[u8]) -> Option<Range<usize>> {
    let is_space = u8::is_ascii_whitespace;
    let byte = |at: usize| element.get(at).copied();
    let end_of = |from: usize, is_end: &dyn Fn(&u8) -> bool| {
        from + element.iter().skip(from).position(is_end).unwrap_or(element.len().saturating_sub(from))
    };
    let mut at = end_of(0, &|byte| is_space(byte) || b"/>".contains(byte));
    let is = |name: &str| element.get(1..at).is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()));
    let wanted = if is("input") {
        "value"
    } else if is("meta") {
        "content"
    } else {
        return None;
    };
    let mut token = None;
    loop {
        at = end_of(at, &|byte| !is_space(byte) && *byte != b'/');
        if matches!(byte(at), None | Some(b'>')) {
            return token;
        }
        let name = at;
        at = end_of(at, &|byte| is_space(byte) || b"/>=".contains(byte));
        let name = element.get(name..at)?;
        at = end_of(at, &|byte| !is_space(byte));
        if byte(at) != Some(b'=') {
            continue;
        }
        at = end_of(at + 1, &|byte| !is_space(byte));
        let range = match byte(at)? {
            quote @ (b'"' | b'\'') => at + 1..end_of(at + 1, &|byte| *byte == quote),
            _ => at..end_of(at, &|byte| is_space(byte) || *byte == b'>'),
        };
        at = range.end + usize::from(matches!(byte(range.end), Some(b'"' | b'\'')));
        let value = element.get(range.clone())?;
        if name.eq_ignore_ascii_case(b"type") && !value.eq_ignore_ascii_case(b"hidden") {
            return None;
        }
        if name.eq_ignore_ascii_case(wanted.as_bytes()) && token.is_none() && !value.is_empty() {
            token = Some(range);
        }
    }
}

/// The token in a visitor's element. Resolves character references: numbers, `amp`, `lt`, `gt`, `quot` and `apos`.
#[must_use]
pub fn token_of(element: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(element.get(token_range(element)?)?).ok()?;
    let mut token = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        token.push_str(before);
        let referred = after.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        let (character, after) = referred.unwrap_or(('&', after));
        token.push(character);
        rest = after;
    }
    token.push_str(rest);
    Some(token)
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placeholder() -> Placeholder {
        Placeholder { page: "/products/mug?color=ä".to_owned(), selector: "[name='t k']".to_owned(), index: 3 }
    }

    fn token(element: &str) -> Option<&str> {
        token_range(element.as_bytes()).map(|range| &element[range])
    }

    #[test]
    fn a_placeholder_names_its_page_and_element() {
        assert_eq!(Placeholder::decode(placeholder().encode().as_bytes()), Some(placeholder()));
        for text in ["edgefront-token-", "edgefront-token-MQ", "edgefront-token-%", "token"] {
            assert_eq!(Placeholder::decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_whole_values_count() {
        let own = placeholder().encode();
        for (before, after) in [
            ("", ""),
            ("a=1&t=", "&b=2"),
            ("{\"t\": \"", "\"}"),
            ("--x\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\n", "\r\n--x--"),
        ] {
            let text = format!("{before}{own}{after}");
            let place = before.len()..before.len() + own.len();
            assert_eq!(Placeholder::find(text.as_bytes(), 0), Some((place.clone(), placeholder())));
            assert_eq!(Placeholder::find(text.as_bytes(), place.end), None);
        }
        for (before, after) in [("I like ", ""), ("t=a+", "&b=2"), ("t=", "+a"), ("t=", "."), ("", "=")] {
            let text = format!("{before}{own}{after}");
            assert_eq!(Placeholder::find(text.as_bytes(), 0), None, "{before}{after}");
            let later = format!("{text}&t={own}");
            assert_eq!(Placeholder::find(later.as_bytes(), 0).unwrap().0.end, later.len(), "{before}{after}");
        }
    }

    #[test]
    fn a_token_is_the_value_of_a_hidden_field_or_the_content_of_a_meta_element() {
        for (element, expected) in [
            ("<input name=t value=a>", Some("a")),
            ("<input value='a b' name=\"t\"/>", Some("a b")),
            ("<INPUT VALUE = \"a>b\">", Some("a>b")),
            ("<meta name=csrf content=\"a\">", Some("a")),
            ("<input type=hidden value=a>", Some("a")),
            ("<input value=a TYPE='Hidden'>", Some("a")),
            ("<input type=submit value=Buy>", None),
            ("<input value=1 type=number>", None),
            ("<button value=b>value=c</button>", None),
            ("<meta content=a value=b>", Some("a")),
            ("<input data-value=a>", None),
            ("<input value>", None),
            ("<input value=\"\" content=a>", None),
            ("<i>value=a</i>", None),
            ("<input/value=a/>", Some("a/")),
            ("<input =value=a>", None),
            ("<input value=\"a", Some("a")),
            ("<input value", None),
            ("<input value=", None),
            ("<meta charset=utf-8>", None),
        ] {
            assert_eq!(token(element), expected, "{element}");
        }
    }

    #[test]
    fn character_references_are_resolved() {
        for (text, expected) in [
            ("a&#x3D;&#x3d;&#43;&amp;b", "a==+&b"),
            ("&lt;&gt;&quot;&apos;", "<>\"'"),
            ("&amp;amp;", "&amp;"),
            ("&copy;&;&#;&#x;&#xD800;&", "&copy;&;&#;&#x;&#xD800;&"),
        ] {
            let quote = if expected.contains('"') { '\'' } else { '"' };
            let element = format!("<input value={quote}{text}{quote}>");
            assert_eq!(token_of(element.as_bytes()).as_deref(), Some(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_element_breaks_the_reader(element in "[a-z<>/!= '\"\n&#;]{0,60}") {
            if let Some(range) = token_range(element.as_bytes()) {
                prop_assert!(!range.is_empty() && range.end <= element.len());
            }
            let _ = token_of(element.as_bytes());
        }

        #[test]
        fn no_text_breaks_the_search(parts in proptest::collection::vec("(edgefront-token-|[A-Za-z0-9&=\"]{0,9})", 0..9)) {
            let _ = Placeholder::find(parts.concat().as_bytes(), 0);
        }
    }
}
