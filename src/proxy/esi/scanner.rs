//! Finds the elements of ESI in a page.

use std::ops::Range;

use bytes::Bytes;
use http::uri::PathAndQuery;
use url::Url;

use super::{EsiError, Include, MAX_INCLUDES, Template, TemplatePart};
use crate::proxy::headers::prefix;

/// Longest part of a page that a message quotes, bytes.
const MAX_QUOTE: usize = 100;

/// Splits a page into text and includes. `url` is the page's URL. An include at `origin` (`ORIGIN_URL`) is one at the page's own
/// host, and the path of `origin` is no part of the include's, as in a `Location`.
///
/// # Errors
/// [`EsiError`], for the first element that cannot be processed.
pub fn scan(page: &Bytes, url: &Url, origin: Option<&Url>) -> Result<Template, EsiError> {
    let mut scanner = Scanner { page, url, origin, at: 0, text: 0, template: Template::default() };
    let (mut is_unwrapping, mut count) = (false, 0);
    while let Some(found) = scanner.find(b"<-") {
        scanner.at = found;
        if is_unwrapping && scanner.rest().starts_with(b"-->") {
            scanner.cut(found + b"-->".len());
            is_unwrapping = false;
        } else if is_comment(scanner.rest()) {
            if is_unwrapping {
                return Err(EsiError::Malformed("<!--esi in <!--esi".to_owned()));
            }
            scanner.cut(found + COMMENT.len());
            is_unwrapping = true;
        } else if begins(scanner.rest(), b"<esi:") {
            let (include, end) = scanner.element()?;
            scanner.cut(end);
            if let Some(include) = include {
                count += 1;
                scanner.template.add(include);
            }
            if count > MAX_INCLUDES {
                return Err(EsiError::TooManyIncludes);
            }
        } else if begins(scanner.rest(), b"</esi:") {
            return Err(EsiError::Malformed(quote(scanner.rest())));
        } else {
            scanner.at += 1;
        }
    }
    if is_unwrapping {
        return Err(EsiError::NotClosed("<!--esi"));
    }
    scanner.add_text(page.len());
    Ok(scanner.template)
}

const COMMENT: &[u8] = b"<!--esi";

/// Returns whether a text begins with `<!--esi`, and not with a comment about something else, such as `<!--esiX -->`.
fn is_comment(text: &[u8]) -> bool {
    let Some(after) = text.strip_prefix(COMMENT) else { return false };
    after.starts_with(b"-->") || after.first().is_none_or(|next| next.is_ascii_whitespace() || *next == b'<')
}

/// Returns whether a text begins with `prefix`, in any case.
fn begins(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// The beginning of the text, for a message.
fn quote(text: &[u8]) -> String {
    let end = text.iter().position(|byte| *byte == b'>').map_or(text.len(), |end| end + 1);
    String::from_utf8_lossy(text.get(..end.min(MAX_QUOTE)).unwrap_or_default()).into_owned()
}

struct Scanner<'a> {
    page: &'a Bytes,
    url: &'a Url,
    origin: Option<&'a Url>,
    at: usize,
    /// The beginning of the text that is not added yet.
    text: usize,
    template: Template,
}

/// A start tag.
struct Tag<'a> {
    attributes: Vec<(&'a str, String)>,
    /// The tag ends with `/>`.
    is_empty: bool,
    /// The tag's place in the page.
    place: Range<usize>,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a [u8] {
        self.page.get(self.at..).unwrap_or_default()
    }

    /// The next place of one of these bytes.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.rest().iter().position(|byte| bytes.contains(byte)).map(|found| self.at + found)
    }

    fn add_text(&mut self, end: usize) {
        if self.text < end {
            self.template.parts.push(TemplatePart::Text(self.page.slice(self.text..end)));
        }
    }

    /// Adds the text before the current place, and continues at `end`.
    fn cut(&mut self, end: usize) {
        self.add_text(self.at);
        (self.at, self.text) = (end, end);
    }

    /// Reads the element at the current place. Returns its include, and its end.
    fn element(&self) -> Result<(Option<Include>, usize), EsiError> {
        let name = self.rest().get(b"<esi:".len()..).unwrap_or_default();
        let length = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').unwrap_or(name.len());
        let name = name.get(..length).unwrap_or_default();
        let start = self.at + b"<esi:".len() + length;
        match name {
            b"include" => {
                let tag = self.tag(start)?;
                let end = self.end_of(&tag, b"</esi:include>", "<esi:include>")?;
                Ok((Some(self.include(tag)?), end))
            }
            b"comment" => {
                let tag = self.tag(start)?;
                Ok((None, self.end_of(&tag, b"</esi:comment>", "<esi:comment>")?))
            }
            b"remove" => {
                let tag = self.tag(start)?;
                if tag.is_empty {
                    return Ok((None, tag.place.end));
                }
                let content = self.page.get(tag.place.end..).unwrap_or_default();
                let end_tag = b"</esi:remove>";
                let length = content.windows(end_tag.len()).position(|window| window == end_tag);
                let length = length.ok_or(EsiError::NotClosed("<esi:remove>"))?;
                Ok((None, tag.place.end + length + end_tag.len()))
            }
            _ => Err(EsiError::Element(quote(name))),
        }
    }

    /// The end of an element without content: `<…/>`, or `<…>` and its end tag.
    fn end_of(&self, tag: &Tag<'_>, end_tag: &[u8], name: &'static str) -> Result<usize, EsiError> {
        if tag.is_empty {
            return Ok(tag.place.end);
        }
        let after = self.page.get(tag.place.end..).unwrap_or_default();
        let blanks = after.len() - after.trim_ascii_start().len();
        if after.trim_ascii_start().starts_with(end_tag) {
            Ok(tag.place.end + blanks + end_tag.len())
        } else {
            Err(EsiError::NotClosed(name))
        }
    }

    /// Reads the attributes of a start tag from `start`, the end of its name.
    fn tag(&self, start: usize) -> Result<Tag<'a>, EsiError> {
        let malformed = || EsiError::Malformed(quote(self.rest()));
        let mut attributes: Vec<(&str, String)> = Vec::new();
        let mut rest = self.page.get(start..).unwrap_or_default();
        loop {
            let blanks = rest.len() - rest.trim_ascii_start().len();
            rest = rest.trim_ascii_start();
            let end = |length| self.at..self.page.len() - rest.len() + length;
            if rest.starts_with(b">") {
                return Ok(Tag { attributes, is_empty: false, place: end(1) });
            }
            if rest.starts_with(b"/>") {
                return Ok(Tag { attributes, is_empty: true, place: end(2) });
            }
            let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
            let (name, after) = rest.split_at(length.filter(|length| *length > 0 && blanks > 0).ok_or_else(malformed)?);
            let value = after.trim_ascii_start().strip_prefix(b"=").ok_or_else(malformed)?.trim_ascii_start();
            let (quote, value) = value.split_first().ok_or_else(malformed)?;
            let length = value.iter().position(|byte| byte == quote).filter(|_| matches!(quote, b'"' | b'\''));
            let (value, after) = value.split_at(length.ok_or_else(malformed)?);
            let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) else {
                return Err(malformed());
            };
            if attributes.iter().any(|(own, _)| *own == name) {
                return Err(malformed());
            }
            attributes.push((name, value.replace("&amp;", "&")));
            // Without the closing quote.
            rest = after.get(1..).unwrap_or_default();
        }
    }

    fn include(&self, tag: Tag<'_>) -> Result<Include, EsiError> {
        let (mut src, mut alt, mut continue_on_error) = (None, None, false);
        for (name, value) in tag.attributes {
            match (name, value.as_str()) {
                ("src", _) => src = Some(self.resolve(&value)?),
                ("alt", _) => alt = Some(self.resolve(&value)?),
                ("onerror", "continue") => continue_on_error = true,
                (name, _) => {
                    return Err(EsiError::Attribute { element: "include", attribute: quote(name.as_bytes()) });
                }
            }
        }
        Ok(Include { src: src.ok_or(EsiError::NoSource)?, alt, continue_on_error })
    }

    /// The path and query of a URL at the page's own host, or at the origin's.
    fn resolve(&self, text: &str) -> Result<String, EsiError> {
        let refused = || EsiError::OtherHost(quote(text.as_bytes()));
        // `$(…)` is a variable of ESI.
        if text.trim().is_empty() || text.contains("$(") {
            return Err(EsiError::Malformed(quote(self.rest())));
        }
        let url = self.url.join(text).map_err(|_| refused())?;
        let mut hosts = [Some(self.url), self.origin].into_iter().flatten();
        let is_own = matches!(url.scheme(), "http" | "https")
            && hosts.any(|own| (url.host_str(), url.port()) == (own.host_str(), own.port()))
            && url.username().is_empty();
        // A path relative to the page's URL begins where the visitor's does.
        let is_relative = !text.trim_start().starts_with(['/', '\\']) && Url::parse(text).is_err();
        let below = url.path().strip_prefix(self.origin.map_or("", prefix));
        let below = below.filter(|below| !is_relative && below.starts_with('/'));
        let path = below.unwrap_or(url.path());
        let path = url.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        // A URL would read two slashes as the beginning of a host.
        let is_path = !path.starts_with("//") && path.parse::<PathAndQuery>().is_ok();
        if is_own && is_path { Ok(path) } else { Err(refused()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan_text(page: &str) -> Result<Template, EsiError> {
        let url = Url::parse("https://shop.example/products/mug?color=red").unwrap();
        scan(&Bytes::copy_from_slice(page.as_bytes()), &url, Url::parse("http://10.0.0.1/base/").ok().as_ref())
    }

    /// The page, with `{src|alt|c}` for an include.
    fn outline(page: &str) -> String {
        let Template { parts, includes } = scan_text(page).unwrap();
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            TemplatePart::Include(index) => {
                let Include { src, alt, continue_on_error } = &includes[*index];
                format!(
                    "{{{src}|{}|{}}}",
                    alt.as_deref().unwrap_or_default(),
                    if *continue_on_error { "c" } else { "" }
                )
            }
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn the_supported_elements_are_processed() {
        for (page, expected) in [
            ("", ""),
            ("a<b>c</b> é", "a<b>c</b> é"),
            (r#"1<esi:include src="/a"/>2"#, "1{/a||}2"),
            (r#"1<esi:include src="/a" />2<esi:include src='/b'/>3"#, "1{/a||}2{/b||}3"),
            (r#"<esi:include src="/a"></esi:include>2"#, "{/a||}2"),
            ("<esi:include src=\"/a\"\n>\n</esi:include>2", "{/a||}2"),
            (r#"<esi:include onerror="continue" alt='/b' src="/a"/>"#, "{/a|/b|c}"),
            (r#"<esi:include src = "/a?x=1&amp;y=2&z='"/>"#, "{/a?x=1&y=2&z=%27||}"),
            (r#"<esi:include src="https://shop.example/a#b"/>"#, "{/a||}"),
            (r#"<esi:include src="../a"/><esi:include src="?b"/>"#, "{/a||}{/products/mug?b||}"),
            (r#"<esi:include src="/base/a?b"/><esi:include src="https://shop.example/base/"/>"#, "{/a?b||}{/||}"),
            (r#"<esi:include src="http://10.0.0.1/base/a"/>"#, "{/a||}"),
            (r#"<esi:include src="/bases"/><esi:include src="../base/a"/>"#, "{/bases||}{/base/a||}"),
            ("1<esi:remove>2<b>3</esi:remove>4", "14"),
            ("1<esi:remove>2<esi:include src='/a'/></esi:remove><esi:remove/>4", "14"),
            (r#"1<esi:comment text="a > b"/>2<esi:comment text=''></esi:comment>3"#, "123"),
            ("1<!--esi 2<esi:include src='/a'/>3 -->4", "1 2{/a||}3 4"),
            ("1<!--esi-->2<!--esi<b>--></b>", "12<b></b>"),
            ("<!--esi <esi:include src='/a?-->'/> --><!-- a -->", " {/a?--%3E||} <!-- a -->"),
            ("<!-- esi --><!--esix--><esim:a><p esi:a>--></esi<", "<!-- esi --><!--esix--><esim:a><p esi:a>--></esi<"),
        ] {
            assert_eq!(outline(page), expected, "{page}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_name() {
        let malformed = |text: &str| format!("malformed: {text}");
        for (page, expected) in [
            ("<esi:vars>$(HTTP_HOST)</esi:vars>", "<esi:vars> is not supported".to_owned()),
            ("<esi:choose><esi:when test='1'>", "<esi:choose> is not supported".to_owned()),
            ("<esi:try>", "<esi:try> is not supported".to_owned()),
            ("<esi:inline name='/a'>", "<esi:inline> is not supported".to_owned()),
            ("<ESI:INCLUDE src='/a'/>", "<esi:INCLUDE> is not supported".to_owned()),
            ("<esi:", "<esi:> is not supported".to_owned()),
            ("<esi:includes src='/a'/>", "<esi:includes> is not supported".to_owned()),
            ("a</esi:remove>b", malformed("</esi:remove>")),
            ("<esi:include src=/a/>", malformed("<esi:include src=/a/>")),
            ("<esi:include src='/a'alt='/b'/>", malformed("<esi:include src='/a'alt='/b'/>")),
            ("<esi:include src='/a' src='/b'/>", malformed("<esi:include src='/a' src='/b'/>")),
            ("<esi:include src='/a", malformed("<esi:include src='/a")),
            ("<esi:include src='/a' ", malformed("<esi:include src='/a' ")),
            ("<esi:include src='/a?$(QUERY_STRING)'/>", malformed("<esi:include src='/a?$(QUERY_STRING)'/>")),
            ("<esi:include src=''/>", malformed("<esi:include src=''/>")),
            ("<!--esi <!--esi --> -->", malformed("<!--esi in <!--esi")),
            ("<esi:include src='/a'>b</esi:include>", "not closed: <esi:include>".to_owned()),
            ("<esi:remove>a", "not closed: <esi:remove>".to_owned()),
            ("<!--esi a", "not closed: <!--esi".to_owned()),
            ("<esi:include/>", "<esi:include> without src".to_owned()),
            (
                "<esi:include src='/a' maxwait='5'/>",
                "the attribute maxwait of <esi:include> is not supported".to_owned(),
            ),
            (
                "<esi:include src='/a' onerror='stop'/>",
                "the attribute onerror of <esi:include> is not supported".to_owned(),
            ),
        ] {
            assert_eq!(scan_text(page).unwrap_err().to_string(), expected, "{page}");
        }
        for src in [
            "//evil.example/a",
            "http://evil.example/",
            "https://shop.example:8443/",
            "http://10.0.0.1:8080/a",
            "http://10.0.0.10/a",
            "https://shop.example@evil.example/",
            "https://user@shop.example/",
            "\\\\evil.example/a",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://",
            "/.//evil.example/a",
            "/base//evil.example/a",
        ] {
            let error = scan_text(&format!("<esi:include src='{src}'/>")).unwrap_err();
            assert_eq!(error, EsiError::OtherHost(src.to_owned()));
        }
    }

    #[test]
    fn the_number_of_includes_is_bounded() {
        let include = "<esi:include src='/a'/>";
        let template = scan_text(&include.repeat(MAX_INCLUDES)).unwrap();
        assert_eq!((template.parts.len(), template.includes.len()), (MAX_INCLUDES, 1));
        assert_eq!(scan_text(&include.repeat(MAX_INCLUDES + 1)), Err(EsiError::TooManyIncludes));
    }

    proptest! {
        #[test]
        fn text_without_esi_stays_as_it_is(page in "[a-z<>/!\\-= '\"\n]{0,200}") {
            prop_assume!(!page.contains("<esi:") && !page.contains("</esi:") && !page.contains("<!--esi"));
            prop_assert_eq!(outline(&page), page);
        }

        #[test]
        fn no_markup_is_left(parts in proptest::collection::vec(
            prop_oneof![
                Just("<esi:include src='/a'/>"), Just("<esi:include src='/a'>"), Just("</esi:include>"),
                Just("<esi:remove>"), Just("</esi:remove>"), Just("<!--esi "), Just("-->"), Just("<esi:"), Just("<"),
                Just("alt='"), Just("'"), Just("/>"), Just("é"), Just(" "), Just("<esi:try>"), Just("<esi:comment/>"),
            ],
            0..20,
        )) {
            let page = parts.concat();
            let Ok(template) = scan_text(&page) else { return Ok(()) };
            for part in template.parts {
                let TemplatePart::Text(text) = part else { continue };
                prop_assert!(!String::from_utf8_lossy(&text).contains("esi:"), "{}", page);
            }
        }
    }
}
