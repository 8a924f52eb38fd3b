//! Holes: the parts of a shared page that belong to one visitor, such as a name or a mini cart.
//!
//! The rules (`HOLES`) name elements of pages, and the origin can include fragments (ESI). Both are searched once, when
//! a page is stored. The stored body is the page of a visitor without cookies, with that visitor's content in the holes.
//! So a hole is only a range of the body, and a visitor without anything personal gets the body as it is. For every
//! other visitor, the body is assembled.
//!
//! - `search`: the search for the holes that rules name.
//! - `placeholder`: the values of tokens in stored pages.
//! - `script_tag`: the script that fills holes in the browser.
//! - `visitor_content`: a visitor's content for holes.
//! - `assembled`: a page with its holes filled.
//! - `form_body`: the placeholders in the bodies of unsafe requests.

pub(super) mod assembled;
pub(super) mod form_body;
pub(super) mod placeholder;
pub(super) mod visitor_content;

mod script_tag;
mod search;

use std::ops::Range;

use http::HeaderValue;
use serde::{Deserialize, Serialize};

pub use self::{
    script_tag::script_tag,
    search::{FoundHoles, find},
};

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
    /// A token of the visitor's session: see `placeholder`.
    Token,
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
            HoleContent::Element { .. } | HoleContent::User | HoleContent::Cart | HoleContent::Token => None,
        }
    }
}

/// The `ETag` of a page with these holes, from that of the page without them. A new rule for tokens changes it, too.
pub fn etag(page: &HeaderValue, holes: &[Hole]) -> Option<HeaderValue> {
    let opened = page.as_bytes().strip_suffix(b"\"")?;
    let places = holes.iter().flat_map(|hole| [hole.range.start, hole.range.end]);
    let hash = places.fold(holes.len(), |hash, at| hash.wrapping_mul(31).wrapping_add(at));
    HeaderValue::try_from([opened, format!("-holes{hash:x}\"").as_bytes()].concat()).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

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
