//! ESI 1.0 (Edge Side Includes, <https://www.w3.org/TR/esi-lang/>): the origin marks the places of fragments in a page.
//!
//! [`scan`] knows `<esi:include>`, `<esi:remove>`, `<esi:comment>` and `<!--esi … -->`. It refuses every other element
//! of ESI, so that no visitor reads markup. ESI is textual: the scanner knows nothing about HTML, and finds an element
//! in a comment or a script, too.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName};

pub use self::scanner::scan;
use crate::ports::error::Error;

mod scanner;

/// Largest number of includes in a page.
pub const MAX_INCLUDES: usize = 10;

/// Announces to the origin, with the value [`CAPABILITY`], that it may send ESI.
pub const CAPABILITY_HEADER: HeaderName = HeaderName::from_static("surrogate-capability");
pub const CAPABILITY: &str = "edgefront=\"ESI/1.0\"";

/// A page with ESI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// In the page's order.
    pub parts: Vec<TemplatePart>,
    /// Without repetitions.
    pub includes: Vec<Include>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    Text(Bytes),
    /// The index of the include.
    Include(usize),
}

/// `<esi:include>`. `src` and `alt` are paths with their queries, at the page's own host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    pub src: String,
    /// Replaces `src` if it fails.
    pub alt: Option<String>,
    /// `onerror="continue"`: without a fragment, the page has nothing in this place.
    pub continue_on_error: bool,
}

impl Template {
    /// The page with its fragments, of which there is one for each include. Also returns the place of each fragment: the
    /// index of its include, and its bytes in the page.
    pub fn assemble<F>(&self, fragments: &[F], body: impl Fn(&F) -> &Bytes) -> (Bytes, Vec<(usize, Range<usize>)>) {
        let (mut page, mut places) = (BytesMut::new(), Vec::new());
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => page.extend_from_slice(text),
                TemplatePart::Include(index) => {
                    let start = page.len();
                    page.extend_from_slice(fragments.get(*index).map_or(&[], |fragment| body(fragment)));
                    places.push((*index, start..page.len()));
                }
            }
        }
        (page.freeze(), places)
    }

    fn add(&mut self, include: Include) {
        let known = self.includes.iter().position(|own| *own == include);
        self.parts.push(TemplatePart::Include(known.unwrap_or(self.includes.len())));
        if known.is_none() {
            self.includes.push(include);
        }
    }
}

/// Why edgefront does not process the ESI of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EsiError {
    #[error("<esi:{0}> is not supported")]
    Element(String),
    #[error("the attribute {attribute} of <esi:{element}> is not supported")]
    Attribute { element: &'static str, attribute: String },
    #[error("malformed: {0}")]
    Malformed(String),
    #[error("not closed: {0}")]
    NotClosed(&'static str),
    #[error("<esi:include> without src")]
    NoSource,
    #[error("an include may name a path of the shop only, not {0}")]
    OtherHost(String),
    #[error("the page has more than {MAX_INCLUDES} includes")]
    TooManyIncludes,
}

/// The outcome of ESI processing, in a response's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processed {
    /// The response holds one visitor's fragments.
    Expanded,
    /// The response reports that the origin's page is refused.
    Refused,
}

impl From<EsiError> for Error {
    fn from(error: EsiError) -> Self {
        Self::Esi(error.to_string())
    }
}

/// Returns whether the origin asks for ESI processing: `Surrogate-Control: content="ESI/1.0"`
/// (<https://www.w3.org/TR/edge-arch/>).
#[must_use]
pub fn is_declared(headers: &HeaderMap) -> bool {
    let lines = headers.get_all("surrogate-control").iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|directive| {
        // `;name` addresses one surrogate.
        let (name, value) = directive.split(';').next().unwrap_or_default().split_once('=').unwrap_or_default();
        let mut capabilities = value.trim().trim_matches('"').split_ascii_whitespace();
        name.trim().eq_ignore_ascii_case("content") && capabilities.any(|one| one.eq_ignore_ascii_case("ESI/1.0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_declares_esi() {
        for (value, expected) in [
            (r#"content="ESI/1.0""#, true),
            (r#"no-store, max-age=60, content = "X/1 ESI/1.0";edgefront"#, true),
            (r#"content="ESI/1.0 ORAC/1.0""#, true),
            ("content=ESI/1.0", true),
            (r#"content="ESI-INV/1.0""#, false),
            ("max-age=60", false),
            ("ESI/1.0", false),
            ("", false),
        ] {
            let headers = [("surrogate-control".parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            assert_eq!(is_declared(&headers), expected, "{value}");
        }
        assert!(!is_declared(&HeaderMap::new()));
    }
}
