//! HTML: the places of elements in a page, found by CSS selectors.
//!
//! A Worker asks the platform's `HTMLRewriter`; native code asks `lol_html`, which is the same parser. Both rewrite a
//! stream and tell no positions. So they insert a random mark before, after and inside each element, and the positions
//! of the marks are the places.

use std::ops::Range;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

use super::random;

/// Finds elements in HTML.
pub trait Html {
    /// Inserts marks into `html`: see [`Marks::of_kind`]. `selectors` are CSS selectors.
    ///
    /// # Errors
    /// If a selector is invalid, or the parser gives up.
    fn mark(&self, html: Bytes, selectors: Vec<String>, marks: Marks) -> LocalBoxFuture<'_, Result<Bytes, HtmlError>>;
}

/// The place of an element, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The index of the selector that matches the element.
    pub selector: usize,
    /// The element with its tags.
    pub outer: Range<usize>,
    /// The content between its tags; None for an element without an end tag.
    pub inner: Option<Range<usize>>,
}

impl Element {
    /// Returns whether the element ends with its own end tag, or needs none. The parser builds no tree: it takes the end
    /// tag of a parent for the end of an element whose end tag is missing.
    fn has_own_end_tag(&self, html: &[u8]) -> bool {
        let Some(inner) = &self.inner else { return true };
        let tag = |range: Range<usize>, before: &[u8]| -> Option<Vec<u8>> {
            let text = html.get(range)?.strip_prefix(before)?;
            let is_name = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'>' | b'/');
            Some(text.iter().copied().take_while(is_name).map(|byte| byte.to_ascii_lowercase()).collect())
        };
        let start = tag(self.outer.start..inner.start, b"<");
        start.is_some() && start == tag(inner.end..self.outer.end, b"</")
    }
}

/// The reason for which no elements were found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HtmlError {
    #[error("{0}")]
    Parser(String),
    #[error("the parser changed the page")]
    Changed,
    #[error("no random bits")]
    NoRandomBits,
}

/// The elements of `html` that match `selectors`, in the order of their start tags.
///
/// # Errors
/// [`HtmlError`].
pub async fn elements(parser: &dyn Html, html: &Bytes, selectors: &[&str]) -> Result<Vec<Element>, HtmlError> {
    let id = random::bytes::<8>().map_err(|_| HtmlError::NoRandomBits)?;
    let marks = Marks { id: format!("{:016x}", u64::from_ne_bytes(id)) };
    let selectors: Vec<_> = selectors.iter().copied().map(str::to_owned).collect();
    let marked = parser.mark(html.clone(), selectors, marks.clone()).await?;
    marks.elements(&marked, html)
}

/// Text as the content of an HTML element.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// The texts that mark the places of elements. Their id is random, so that no page contains one.
#[derive(Debug, Clone)]
pub struct Marks {
    id: String,
}

/// The four places of an element, in their order.
const KINDS: [u8; 4] = *b"<[]>";

impl Marks {
    /// The mark for one place of an element that matches a selector: `<` before its start tag, `[` after its start tag,
    /// `]` before its end tag, `>` after its end tag. The platform's code builds the same text.
    #[must_use]
    pub fn of_kind(&self, kind: char, selector: usize) -> String {
        format!("{}{selector:02}{kind}", self.id)
    }

    /// The beginning of every mark.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the marks, and checks that the page is `html` without them.
    fn elements(&self, marked: &[u8], html: &[u8]) -> Result<Vec<Element>, HtmlError> {
        let mut elements: Vec<Element> = Vec::new();
        // Indexes of `elements` whose end is not found yet.
        let mut open: Vec<usize> = Vec::new();
        let (mut rest, mut at) = (marked, 0);
        while let Some(index) = find(rest, self.id.as_bytes()) {
            let (text, mark) = rest.split_at(index);
            if html.get(at..at + index) != Some(text) {
                return Err(HtmlError::Changed);
            }
            at += index;
            let [ten @ b'0'..=b'9', one @ b'0'..=b'9', kind, after @ ..] = mark.get(self.id.len()..).unwrap_or(&[])
            else {
                return Err(HtmlError::Changed);
            };
            let selector = usize::from(ten - b'0') * 10 + usize::from(one - b'0');
            rest = after;
            if *kind == KINDS[0] {
                open.push(elements.len());
                elements.push(Element { selector, outer: at..at, inner: None });
                continue;
            }
            let is_own = |index: &&usize| elements.get(**index).is_some_and(|element| element.selector == selector);
            let Some(own) = open.iter().rev().find(is_own).copied() else { return Err(HtmlError::Changed) };
            let Some(element) = elements.get_mut(own) else { return Err(HtmlError::Changed) };
            match kind {
                b'[' => element.inner = Some(at..at),
                b']' => element.inner = element.inner.take().map(|inner| inner.start..at),
                _ => {
                    element.outer.end = at;
                    open.retain(|index| *index != own);
                }
            }
        }
        if html.get(at..) != Some(rest) {
            return Err(HtmlError::Changed);
        }
        let is_closed = |(index, element): &(usize, Element)| !open.contains(index) && element.has_own_end_tag(html);
        Ok(elements.into_iter().enumerate().filter(is_closed).map(|(_, element)| element).collect())
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// [`Html`] by `lol_html`.
#[cfg(not(target_arch = "wasm32"))]
pub struct LolHtml;

#[cfg(not(target_arch = "wasm32"))]
impl Html for LolHtml {
    fn mark(&self, html: Bytes, selectors: Vec<String>, marks: Marks) -> LocalBoxFuture<'_, Result<Bytes, HtmlError>> {
        use lol_html::{HtmlRewriter, Selector, Settings, element, html_content::ContentType};
        Box::pin(async move {
            let wrong = |error: &dyn std::fmt::Display| HtmlError::Parser(error.to_string());
            let mut settings = Settings::new();
            for (index, selector) in selectors.iter().enumerate() {
                selector.parse::<Selector>().map_err(|error| wrong(&error))?;
                let marks = marks.clone();
                settings = settings.append_element_content_handler(element!(selector, move |element| {
                    element.before(&marks.of_kind('<', index), ContentType::Html);
                    element.prepend(&marks.of_kind('[', index), ContentType::Html);
                    element.append(&marks.of_kind(']', index), ContentType::Html);
                    element.after(&marks.of_kind('>', index), ContentType::Html);
                    Ok(())
                }));
            }
            let mut marked = Vec::with_capacity(html.len());
            let mut rewriter = HtmlRewriter::new(settings, |chunk: &[u8]| marked.extend_from_slice(chunk));
            rewriter.write(&html).map_err(|error| wrong(&error))?;
            rewriter.end().map_err(|error| wrong(&error))?;
            Ok(marked.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Selector, element and content of each element that is found.
    fn find_all<'a>(html: &'a str, selectors: &[&str]) -> Vec<(usize, &'a str, Option<&'a str>)> {
        let bytes = Bytes::copy_from_slice(html.as_bytes());
        let found = elements(&LolHtml, &bytes, selectors).now_or_never().unwrap().unwrap();
        let text = |range: Range<usize>| html.get(range).unwrap();
        found.into_iter().map(|found| (found.selector, text(found.outer), found.inner.map(text))).collect()
    }

    #[test]
    fn an_element_is_found_with_its_content() {
        let nested = "<p>é<b id=x>c</b>d</p>";
        let both = [(0, nested, Some("é<b id=x>c</b>d")), (1, "<b id=x>c</b>", Some("c"))];
        assert_eq!(find_all(nested, &["p", "#x"]), both);
        let inputs = "<INPUT name=a value=1><br><input name=b>";
        assert_eq!(
            find_all(inputs, &["input[name=a]", "br"]),
            [(0, "<INPUT name=a value=1>", None), (1, "<br>", None)]
        );
        let same = "<div>1<div>2</div></div><div>3</div>";
        let outer: Vec<_> = find_all(same, &["div"]).into_iter().map(|(_, outer, _)| outer).collect();
        assert_eq!(outer, ["<div>1<div>2</div></div>", "<div>2</div>", "<div>3</div>"]);
        assert_eq!(find_all("<b class='x y'></b>", &["b", ".y"]).len(), 2);
        assert_eq!(find_all("<script>'<b>'</script><!--<b></b>-->", &["b"]), []);
        assert_eq!(find_all("", &["b"]), []);
    }

    #[test]
    fn an_element_without_its_end_tag_has_no_place() {
        for html in ["<p><div id=x><p>", "<p id=x>a<p>b</div>", "<div id=x/>a", "<ul><li id=x>a</ul>z", "<p id=x"] {
            assert_eq!(find_all(html, &["#x"]), [], "{html}");
        }
    }

    #[test]
    fn an_invalid_selector_is_an_error() {
        let found = elements(&LolHtml, &Bytes::from_static(b"<p></p>"), &["p", "p:hover("]).now_or_never().unwrap();
        assert!(matches!(found, Err(HtmlError::Parser(_))), "{found:?}");
    }

    #[test]
    fn a_page_that_the_parser_changed_is_an_error() {
        let marks = Marks { id: "##".to_owned() };
        let found = |marked: &[u8]| marks.elements(marked, b"<p>a</p>").map(|found| found.len());
        assert_eq!(found(b"##00<<p>##00[a##00]</p>##00>"), Ok(1));
        for marked in [&b"<p>b</p>"[..], b"##00<<p>##00[b##00]</p>##00>", b"##00<<p>", b"##0", b"##00><p>a</p>", b""] {
            assert_eq!(found(marked), Err(HtmlError::Changed), "{}", String::from_utf8_lossy(marked));
        }
    }
}
