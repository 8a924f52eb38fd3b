//! Placeholders: the values of tokens in stored pages.
//!
//! A token belongs to a session, so no visitor can use the token of a shared render. A stored page has a placeholder
//! instead. The placeholder names the page and the element. In an unsafe request, edgefront replaces it with the visitor's
//! own token: see `execute::tokens`.
//!
//! ```text
//! edgefront-token-<base64url of "<index> <selector>\n<path and query>[\n<form>]">
//! ```
//!
//! Its characters need no escapes in HTML, forms, JSON and headers.

mod named;

use std::ops::Range;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use self::named::{is_of_word, name_at_end, named_parameter, named_string};

const START: &str = "edgefront-token-";

/// The place of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Path and query of the page.
    pub page: String,
    pub selector: String,
    /// The `action` of its form. Empty without one.
    pub form: String,
    /// The index among the elements of the page that match the selector, in forms with this `action`.
    pub index: usize,
}

impl Placeholder {
    #[must_use]
    pub fn encode(&self) -> String {
        let Self { page, selector, form, index } = self;
        let mut text = START.to_owned();
        let line = if form.is_empty() { "" } else { "\n" };
        URL_SAFE_NO_PAD.encode_string(format!("{index} {selector}\n{page}{line}{form}"), &mut text);
        text
    }

    /// The placeholder that is all of `text`.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        let place = String::from_utf8(URL_SAFE_NO_PAD.decode(text.strip_prefix(START.as_bytes())?).ok()?).ok()?;
        let (element, page) = place.split_once('\n')?;
        let (page, form) = page.split_once('\n').unwrap_or((page, ""));
        let (index, selector) = element.split_once(' ')?;
        let index = index.parse().ok()?;
        let is_page = page.starts_with('/') && !page.contains('#');
        is_page.then(|| Self { page: page.to_owned(), selector: selector.to_owned(), form: form.to_owned(), index })
    }
}

/// The ranges of a text that look like placeholders.
pub fn ranges(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = text.get(at..)?.windows(START.len()).position(|window| window == START.as_bytes())?;
        let start = at + found;
        at = start + text.iter().skip(start).take_while(|byte| is_of_word(**byte)).count();
        Some(start..at)
    })
}

/// The range of a token in its element: the `value` of a hidden `input`, the `content` of a `meta`, a [parameter](named_parameter) in the
/// `action` of a `form`, or the first string with the name of a CSRF token in a `script`, or else such a parameter. None for another
/// element, and for an empty attribute.
#[must_use]
pub fn token_range(element: &[u8]) -> Option<Range<usize>> {
    if is_script(element) {
        return named_string(element).or_else(|| named_parameter(element));
    }
    if is_tag(element, b"form") {
        let address = attribute_range(element, "action")?;
        let Range { start, end } = named_parameter(element.get(address.clone())?)?;
        return Some(address.start + start..address.start + end);
    }
    let attribute = if is_tag(element, b"input") {
        "value"
    } else if is_tag(element, b"meta") {
        "content"
    } else {
        return None;
    };
    let kind = attribute_range(element, "type").and_then(|range| element.get(range));
    let is_hidden = kind.is_none_or(|kind| kind.eq_ignore_ascii_case(b"hidden"));
    attribute_range(element, attribute).filter(|range| is_hidden && !range.is_empty())
}

/// The last form before an element of a page. Its `action` tells the tokens of several forms apart: in Rails, each is valid for
/// one `action` only. Their order differs between visitors, and between the stored page and a later one. Forms do not nest.
#[derive(Debug, Default)]
pub struct LastForm {
    range: Range<usize>,
    action: String,
}

impl LastForm {
    pub const SELECTOR: &str = "form";

    /// The form with this place in `page`.
    #[must_use]
    pub fn new(range: Range<usize>, page: &[u8]) -> Self {
        let form = page.get(range.clone()).unwrap_or_default();
        let action = attribute_range(form, "action").and_then(|range| std::str::from_utf8(form.get(range)?).ok());
        Self { range, action: action.map(unescaped).unwrap_or_default() }
    }

    /// The form's `action`, if an element at `position` is in the form. Empty otherwise, and for the form itself.
    #[must_use]
    pub fn action_at(&self, position: usize) -> &str {
        if self.range.contains(&position) && position > self.range.start { &self.action } else { "" }
    }
}

/// Returns whether the element is a `script`, or a `form` with a token in its address.
#[must_use]
pub fn has_token_in_text(element: &[u8]) -> bool {
    is_script(element) || is_tag(element, b"form") && token_range(element).is_some()
}

/// Returns whether the element is a `script`.
fn is_script(element: &[u8]) -> bool {
    is_tag(element, b"script")
}

/// Returns whether the element begins with a tag of this name.
fn is_tag(element: &[u8], name: &[u8]) -> bool {
    let end = name.len() + 1;
    let is_name = element.get(1..end).is_some_and(|own| own.eq_ignore_ascii_case(name));
    is_name && element.get(end).is_none_or(|byte| byte.is_ascii_whitespace() || b"/>".contains(byte))
}

/// The range of an attribute's value in the start tag of `element` (HTML Standard, §13.2.5.32 to §13.2.5.38).
fn attribute_range(element: &[u8], wanted: &str) -> Option<Range<usize>> {
    let is_space = u8::is_ascii_whitespace;
    let byte = |at: usize| element.get(at).copied();
    let end_of = |from: usize, is_end: &dyn Fn(&u8) -> bool| {
        from + element.iter().skip(from).position(is_end).unwrap_or(element.len().saturating_sub(from))
    };
    let mut at = end_of(0, &|byte| is_space(byte) || b"/>".contains(byte));
    loop {
        at = end_of(at, &|byte| !is_space(byte) && *byte != b'/');
        if matches!(byte(at), None | Some(b'>')) {
            return None;
        }
        let name = at;
        at = end_of(at, &|byte| is_space(byte) || b"/>=".contains(byte));
        let name = element.get(name..at)?;
        at = end_of(at, &|byte| !is_space(byte));
        if byte(at) != Some(b'=') {
            continue;
        }
        at = end_of(at + 1, &|byte| !is_space(byte));
        let value = match byte(at)? {
            quote @ (b'"' | b'\'') => at + 1..end_of(at + 1, &|byte| *byte == quote),
            _ => at..end_of(at, &|byte| is_space(byte) || *byte == b'>'),
        };
        at = value.end + usize::from(matches!(byte(value.end), Some(b'"' | b'\'')));
        if name.eq_ignore_ascii_case(wanted.as_bytes()) {
            return Some(value);
        }
    }
}

/// A token of a visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormToken {
    /// The name of its field in the form. None for a `meta` and a `script`.
    pub field: Option<String>,
    /// The name of its parameter in an address.
    pub parameter: Option<String>,
    pub value: String,
}

impl FormToken {
    /// The token of an element, at its [`token_range`].
    #[must_use]
    pub fn of_element(element: &[u8]) -> Option<Self> {
        let text = |range| Some(unescaped(std::str::from_utf8(element.get(range)?).ok()?));
        let name = attribute_range(element, "name").filter(|_| is_tag(element, b"input"));
        let range = token_range(element)?;
        let before = element.get(..range.start)?.strip_suffix(b"=").filter(|_| has_token_in_text(element));
        let parameter = before.map(|before| String::from_utf8_lossy(name_at_end(before)).into_owned());
        Some(Self { field: name.and_then(text), parameter, value: text(range)? })
    }
}

/// Resolves character references: numbers, `amp`, `lt`, `gt`, `quot` and `apos`.
fn unescaped(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        result.push_str(before);
        let referred = after.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        let (character, after) = referred.unwrap_or(('&', after));
        result.push(character);
        rest = after;
    }
    result.push_str(rest);
    result
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
        let (page, selector) = ("/products/mug?color=ä".to_owned(), "[name='t k']".to_owned());
        Placeholder { page, selector, form: "/cart".to_owned(), index: 3 }
    }

    fn token(element: &str) -> Option<&str> {
        token_range(element.as_bytes()).map(|range| &element[range])
    }

    #[test]
    fn a_placeholder_names_its_page_and_element() {
        for form in ["", "/cart", "?a\nb"] {
            let placeholder = Placeholder { form: form.to_owned(), ..placeholder() };
            assert_eq!(Placeholder::decode(placeholder.encode().as_bytes()), Some(placeholder));
        }
        for text in ["edgefront-token-", "edgefront-token-MQ", "edgefront-token-%", "token"] {
            assert_eq!(Placeholder::decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_token_is_a_value_of_a_hidden_field_a_meta_element_or_the_address_of_a_form() {
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
            ("<form action='/a?id=3&amp;review_token=0123456789abcdef'>", Some("0123456789abcdef")),
            ("<form action=/a?_csrf=0123456789abcdef&id=3 id=f>", Some("0123456789abcdef")),
            ("<form action='/a?CFTOKEN=0123456789abcdef&review_token=1&b_token=0123456789abcde%2F'>", None),
            ("<form data-a='?a_token=0123456789abcdef'>", None),
            ("<a href='?a_token=0123456789abcdef'>", None),
        ] {
            assert_eq!(token(element), expected, "{element}");
        }
    }

    #[test]
    fn a_token_of_a_script_is_the_first_string_with_a_name_of_csrf_tokens() {
        for (script, expected) in [
            ("<script>var odoo = {\n csrf_token: \"a1o2\",\n};</script>", Some("a1o2")),
            ("<script>window.Shop={\"csrfToken\":\"a+/=\"}</script>", Some("a+/=")),
            ("<SCRIPT>let XSRF = 'a'; let csrf = 'b'</SCRIPT>", Some("a")),
            ("<script>csrf = token; csrf == 'a'; _csrf = \"b\"</script>", Some("b")),
            ("<script>csrfHeader = 'X-CSRF-Token'; csrf_token_name = 'a'; csrfToken = 'b'</script>", Some("b")),
            ("<script>csrfHeader = 'X-CSRF-Token'</script>", None),
            ("<script>{'csrf': '', 'csrf' : 'a.b'}</script>", Some("a.b")),
            ("<script>csrf = \"a\\u002f\"</script>", None),
            ("<script>csrf = \"a b\"</script>", None),
            ("<script>csrf = \"a&amp;b\"</script>", None),
            ("<script>csrf = 'a</script>", None),
            ("<script>csrf = 'a\n'</script>", None),
            ("<script>{\"text\": \"csrf = 'b'\", \"csrf\": \"a\"}</script>", Some("a")),
            ("<script>{\"text\": \"\\\"csrf\\\":\\\"b\", \"csrf\": \"a\"}</script>", Some("a")),
            ("<script>{\"text\": \"\\\\\", \"csrf\": \"a\"}</script>", Some("a")),
            ("<script>// the shop's\ncsrf = 'a'</script>", Some("a")),
            ("<script>csrf</script>", None),
            ("<script>LOCALS = { _csrf: unescape('a-b'), me: unescape('c') }</script>", Some("a-b")),
            ("<script>csrf = cookie('csrftoken')</script>", None),
            ("<script>token = 'a'</script>", None),
            ("<b>csrf = 'a'</b>", None),
            ("<script>post('?r=review&review_token=0123456789abcdef&id=3')</script>", Some("0123456789abcdef")),
            ("<script>url = '?a_token=0123456789abcdef'; csrf = 'a'</script>", Some("a")),
            ("<script>url = '?access_token=0123456789abcdef'</script>", None),
            ("<script>a_token=functionWithALongName()</script>", None),
        ] {
            assert_eq!(token(script), expected, "{script}");
        }
    }

    #[test]
    fn only_a_token_of_an_address_has_a_parameter() {
        let parameter = |element: &str| FormToken::of_element(element.as_bytes()).unwrap().parameter;
        for html in ["<form action='?id=1&amp;my_token=@'>", "<script>post('?my_token=@')</script>"] {
            assert_eq!(parameter(&html.replace('@', "0123456789abcdef")).as_deref(), Some("my_token"), "{html}");
        }
        for html in ["<input name=my_token value=@>", "<script>csrf = '@'</script>", "<meta content=@>"] {
            assert_eq!(parameter(&html.replace('@', "0123456789abcdef")), None, "{html}");
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
            let token = FormToken::of_element(element.as_bytes()).map(|token| token.value);
            assert_eq!(token.as_deref(), Some(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_element_breaks_the_reader(element in "(<script>|<input |)([a-z<>/!=: '\"\n&#;]|csrf){0,60}") {
            if let Some(range) = token_range(element.as_bytes()) {
                prop_assert!(!range.is_empty() && range.end <= element.len());
            }
            let _ = FormToken::of_element(element.as_bytes());
        }

        #[test]
        fn no_text_breaks_the_search(parts in proptest::collection::vec("(edgefront-token-|[A-Za-z0-9&=\"]{0,9})", 0..9)) {
            let text = parts.concat();
            prop_assert!(ranges(text.as_bytes()).all(|range| text[range].starts_with(START)));
        }
    }
}
