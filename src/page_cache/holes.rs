//! Holes: the parts of a shared page that belong to one visitor, such as a name or a mini cart.
//!
//! The rules (`HOLES`) name elements of pages, and the origin can include fragments (ESI). Both are searched once, when
//! a page is stored. The stored body is the page of a visitor without cookies, with that visitor's content in the holes.
//! So a hole is only a range of the body, and a visitor without anything personal gets the body as it is. For every
//! other visitor, the body is assembled: see [`assembled`](super::assembled).

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};

use crate::{
    config::rules::{HoleRule, HoleSource},
    ports::{
        assets::{Asset, asset},
        html::{self, Html, HtmlError},
        sort,
    },
};

/// The `Cache-Control` of a page with holes: no cache may reuse it for another visitor, or without a validation.
pub const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Other headers that may let a cache in front of edgefront store the page (RFC 9111 §5.3, RFC 9213 §3).
pub const OTHER_CACHING: [&str; 4] =
    ["cdn-cache-control", "cloudflare-cdn-cache-control", "surrogate-control", "expires"];

/// A part of a page's body that belongs to one visitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The place in the body, in bytes.
    pub range: Range<usize>,
    pub content: HoleContent,
}

/// The content of a hole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoleContent {
    /// The element of this selector and index on the origin's page that fills holes.
    Element { selector: String, index: usize },
    /// The id of the signed-in user.
    User,
    /// The number of pieces in the visitor's cart.
    Cart,
    /// A fragment of the origin's page (`<esi:include>`).
    Include(IncludedHole),
}

/// A fragment, by its path and query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncludedHole {
    pub src: String,
    /// Replaces `src` if it fails.
    pub alt: Option<String>,
    /// No two visitors may share the fragment, not even visitors without cookies.
    pub is_private: bool,
}

impl Hole {
    /// The fragment that fills the hole.
    #[must_use]
    pub const fn include(&self) -> Option<&IncludedHole> {
        match &self.content {
            HoleContent::Include(include) => Some(include),
            HoleContent::Element { .. } | HoleContent::User | HoleContent::Cart => None,
        }
    }
}

/// The script that fills the holes of a page whose content did not arrive with it.
const SCRIPT: Asset = asset!("holes.js");

/// The tag that lets [`SCRIPT`] replace the element before it. A module runs once, however often its tag is repeated.
#[must_use]
pub fn script_tag(selector: &str, index: usize) -> String {
    let selector = selector.replace('&', "&amp;").replace('"', "&quot;");
    format!(r#"<script type="module" src="{SCRIPT}" data-hole="{selector}" data-index="{index}"></script>"#)
}

/// Finds the holes of a page. Rules without an element on the page add none.
///
/// # Errors
/// [`HtmlError`].
pub async fn find(parser: &dyn Html, rules: &[&HoleRule], body: &Bytes) -> Result<Vec<Hole>, HtmlError> {
    let selectors: Vec<_> = rules.iter().map(|rule| rule.selector.as_str()).collect();
    let mut counts = vec![0; rules.len()];
    let mut holes: Vec<Hole> = Vec::new();
    for element in html::elements(parser, body, &selectors).await? {
        let (Some(rule), Some(count)) = (rules.get(element.selector), counts.get_mut(element.selector)) else {
            continue;
        };
        let index = *count;
        *count += 1;
        let (range, content) = match rule.source {
            HoleSource::Page => (Some(element.outer), HoleContent::Element { selector: rule.selector.clone(), index }),
            HoleSource::User => (element.inner, HoleContent::User),
            HoleSource::Cart => (element.inner, HoleContent::Cart),
        };
        holes.extend(range.map(|range| Hole { range, content }));
    }
    sort::sort_by(&mut holes, |one, other| one.range.start.cmp(&other.range.start));
    // A hole within a hole arrives with its content.
    let mut end = 0;
    holes.retain(|hole| {
        let is_outside = hole.range.start >= end;
        end = end.max(hole.range.end);
        is_outside
    });
    Ok(holes)
}

/// Joins the holes of the rules with those of included fragments. A fragment within an element arrives with the
/// element.
#[must_use]
pub fn joined(elements: Vec<Hole>, mut included: Vec<Hole>) -> Vec<Hole> {
    let overlaps = |one: &Hole, other: &Hole| one.range.start < other.range.end && one.range.end > other.range.start;
    included.retain(|include| !elements.iter().any(|element| overlaps(include, element)));
    included.extend(elements);
    sort::sort_by(&mut included, |one, other| {
        (one.range.start, one.range.end).cmp(&(other.range.start, other.range.end))
    });
    included
}

/// Returns whether holes lie in order and without overlap in a body of this length.
#[must_use]
pub fn are_in_order(holes: &[Hole], length: usize) -> bool {
    let mut at = 0;
    let is_next = |hole: &Hole| {
        let Range { start, end } = hole.range;
        let is_next = at <= start && start <= end;
        at = end;
        is_next
    };
    holes.iter().all(is_next) && at <= length
}

/// Returns whether a message is HTML by its `Content-Type`.
#[must_use]
pub fn is_html(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/html"))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::{config::rules::HoleRules, ports::html::LolHtml};

    fn find_in(html: &str, rules: &str) -> Vec<(String, HoleContent)> {
        let (rules, body) = (HoleRules::parse(rules).unwrap(), Bytes::copy_from_slice(html.as_bytes()));
        let rules: Vec<_> = rules.of_path("/p").collect();
        let holes = find(&LolHtml, &rules, &body).now_or_never().unwrap().unwrap();
        assert!(are_in_order(&holes, html.len()));
        holes.into_iter().map(|hole| (html[hole.range].to_owned(), hole.content)).collect()
    }

    #[test]
    fn a_hole_is_an_element_or_its_content() {
        let html =
            "<b class=u>?</b><i id=cart>0</i><form><input name=t value=1></form><input name=t value=2><hr class=u>";
        let element = |index| HoleContent::Element { selector: "[name=t]".to_owned(), index };
        let expected = [
            ("?", HoleContent::User),
            ("0", HoleContent::Cart),
            ("<input name=t value=1>", element(0)),
            ("<input name=t value=2>", element(1)),
        ];
        let holes =
            find_in(html, "/p [name=t] <- /me; /p .u <- user; /p #cart <- cart; /q form <- /me; /p #none <- user");
        assert_eq!(holes, expected.map(|(text, content)| (text.to_owned(), content)));
    }

    #[test]
    fn a_hole_within_a_hole_is_part_of_it() {
        let holes = find_in("<div><b>1</b></div><b>2</b>", "/p b <- /me; /p div <- /me");
        let texts: Vec<_> = holes.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["<div><b>1</b></div>", "<b>2</b>"]);
        // The index counts all elements of the selector.
        assert_eq!(holes.last().unwrap().1, HoleContent::Element { selector: "b".to_owned(), index: 1 });
    }

    #[test]
    fn a_fragment_within_an_element_is_part_of_it() {
        let hole = |range, content: &HoleContent| Hole { range, content: content.clone() };
        let include = HoleContent::Include(IncludedHole { src: "/a".to_owned(), alt: None, is_private: false });
        let elements = [2..5, 7..7, 8..9].map(|range| hole(range, &HoleContent::User));
        let included = [0..2, 2..2, 2..4, 3..3, 4..6, 5..5, 7..8].map(|range| hole(range, &include));
        let expected = [0..2, 2..2, 2..5, 5..5, 7..7, 7..8, 8..9];
        let holes = joined(elements.to_vec(), included.to_vec());
        assert_eq!(holes.iter().map(|hole| hole.range.clone()).collect::<Vec<_>>(), expected);
        assert!(are_in_order(&holes, 9));
    }

    #[test]
    fn holes_outside_of_the_body_are_refused() {
        for (places, expected) in [
            (&[(0, 2), (2, 2), (3, 5)][..], true),
            (&[(0, 3), (2, 5)], false),
            (&[(3, 6)], false),
            (&[(4, 3)], false),
            (&[], true),
        ] {
            let hole = |(start, end): &(usize, usize)| Hole { range: *start..*end, content: HoleContent::User };
            assert_eq!(are_in_order(&places.iter().map(hole).collect::<Vec<_>>(), 5), expected, "{places:?}");
        }
    }
}
