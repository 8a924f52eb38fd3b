//! The search for the holes of a page that rules name. Tokens become placeholders.

use std::ops::Range;

use bytes::Bytes;

use super::{
    Hole, HoleContent,
    placeholder::{LastForm, Placeholder, has_token_in_text, token_range},
    script_tag::{tag_length, token_tag},
};
use crate::{
    config::rules::{HoleRule, HoleSource},
    ports::{
        html::{self, Html, HtmlError},
        sort,
    },
};

/// The holes of a page that rules name.
#[derive(Debug, Default)]
pub struct FoundHoles {
    holes: Vec<Hole>,
    /// The changes for tokens, in order and without overlap: placeholders, and script tags behind the elements.
    edits: Vec<(Range<usize>, String)>,
}

impl FoundHoles {
    /// The body to store, with its holes: those of the rules and `included`. A hole that ends where a script tag begins contains
    /// the tag. A body that the origin confirmed has placeholders and tags already.
    #[must_use]
    pub fn into_page(self, body: Bytes, included: Vec<Hole>) -> (Bytes, Vec<Hole>) {
        let mut holes = joined(self.holes, included);
        if self.edits.is_empty() {
            return (body, holes);
        }
        let mut result = Vec::with_capacity(body.len());
        // The bytes that the edits before each one add and remove: a page may have thousands of forms.
        let (mut at, mut added, mut removed, mut sums) = (0, 0, 0, vec![(0, 0)]);
        for (range, text) in &self.edits {
            result.extend_from_slice(body.get(at..range.start).unwrap_or_default());
            result.extend_from_slice(text.as_bytes());
            at = range.end;
            added += text.len();
            removed += range.len();
            sums.push((added, removed));
        }
        result.extend_from_slice(body.get(at..).unwrap_or_default());
        let moved = |position: usize| {
            let until = self.edits.partition_point(|(range, _)| range.start <= position);
            let before = self.edits.partition_point(|(range, _)| range.start < position);
            let (added, _) = sums.get(until).copied().unwrap_or_default();
            let (_, removed) = sums.get(before).copied().unwrap_or_default();
            position + added - removed
        };
        for hole in &mut holes {
            hole.range = moved(hole.range.start)..moved(hole.range.end);
        }
        (result.into(), holes)
    }
}

/// Finds the holes of the page with this path and query. Rules without an element on the page add none.
///
/// # Errors
/// [`HtmlError`].
pub async fn find(parser: &dyn Html, rules: &[&HoleRule], page: &str, body: &Bytes) -> Result<FoundHoles, HtmlError> {
    let mut selectors: Vec<_> = rules.iter().map(|rule| rule.selector.as_str()).collect();
    let has_tokens = rules.iter().any(|rule| rule.source == HoleSource::Token);
    selectors.extend(has_tokens.then_some(LastForm::SELECTOR));
    let mut last_form = LastForm::default();
    let mut counts = vec![0; rules.len()];
    // Rule and form of each token in a form.
    let mut in_forms: Vec<(usize, String)> = Vec::new();
    let mut holes: Vec<Hole> = Vec::new();
    let mut edits = Vec::new();
    for element in html::elements(parser, body, &selectors).await? {
        let (Some(rule), Some(count)) = (rules.get(element.selector), counts.get_mut(element.selector)) else {
            last_form = LastForm::new(element.outer, body);
            continue;
        };
        let mut index = *count;
        *count += 1;
        let (range, content) = match rule.source {
            HoleSource::Page => (Some(element.outer), HoleContent::Element { selector: rule.selector.clone(), index }),
            HoleSource::Token => {
                let Range { start, end } = element.outer;
                let html = body.get(start..end).unwrap_or_default();
                let form = last_form.action_at(start).to_owned();
                if !form.is_empty() {
                    let own = (element.selector, form.clone());
                    index = in_forms.iter().filter(|other| **other == own).count();
                    in_forms.push(own);
                }
                let placeholder = Placeholder { page: page.to_owned(), selector: rule.selector.clone(), form, index };
                let token = token_range(html).map(|token| start + token.start..start + token.end);
                edits.extend(token.clone().map(|token| (token, placeholder.encode())));
                // `holes.js` cannot replace a script that has run, or a form with typed text. So only the token itself is a hole.
                let hole = if has_token_in_text(html) {
                    token
                } else {
                    let tag = tag_length(body.get(end..).unwrap_or_default());
                    edits.push((end..end + tag, token_tag(&placeholder)));
                    Some(start..end)
                };
                (hole, HoleContent::Token)
            }
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
    sort::sort_by(&mut edits, |one: &(Range<usize>, _), other| one.0.start.cmp(&other.0.start));
    // Two rules may name one element.
    edits.dedup_by_key(|(range, _)| range.start);
    Ok(FoundHoles { holes, edits })
}

/// Joins the holes of the rules with those of included fragments. If a fragment and an element overlap, the outer one fills
/// both. If neither contains the other, the element does. A fragment that is the whole content of a user or cart element counts
/// as inner.
fn joined(mut elements: Vec<Hole>, mut included: Vec<Hole>) -> Vec<Hole> {
    let overlaps = |one: &Hole, other: &Hole| one.range.start < other.range.end && one.range.end > other.range.start;
    let contains = |include: &Hole, element: &Hole| {
        let is_content =
            matches!(element.content, HoleContent::User | HoleContent::Cart) && include.range == element.range;
        include.range.start <= element.range.start && element.range.end <= include.range.end && !is_content
    };
    included.retain(|include| elements.iter().all(|element| !overlaps(include, element) || contains(include, element)));
    elements.retain(|element| !included.iter().any(|include| overlaps(include, element)));
    included.extend(elements);
    sort::sort_by(&mut included, |one, other| {
        (one.range.start, one.range.end).cmp(&(other.range.start, other.range.end))
    });
    included
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::{
        super::{
            IncludedHole, are_in_order,
            script_tag::{ON_USE, script_tag},
        },
        *,
    };
    use crate::{config::rules::HoleRules, ports::html::LolHtml};

    fn find_in(html: &str, rules: &str) -> Vec<(String, HoleContent)> {
        let (rules, body) = (HoleRules::parse(rules).unwrap(), Bytes::copy_from_slice(html.as_bytes()));
        let rules: Vec<_> = rules.of_path("/p").collect();
        let holes = find(&LolHtml, &rules, "/p", &body).now_or_never().unwrap().unwrap().holes;
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
    fn a_token_has_a_script_once() {
        let html = "<b>1</b><form><i>2</i><input name=t></form><input name=t><b>3</b>";
        let rules = HoleRules::parse("/p b <- .; /p [name=t] <- token; /* input <- token").unwrap();
        let rules: Vec<_> = rules.of_path("/p").collect();
        let insert = |body: &Bytes| {
            let found = find(&LolHtml, &rules, "/p", body).now_or_never().unwrap().unwrap();
            let (body, holes) = found.into_page(body.clone(), Vec::new());
            assert!(are_in_order(&holes, body.len()));
            let text = |hole: &Hole| String::from_utf8_lossy(&body[hole.range.clone()]).into_owned();
            let texts: Vec<_> = holes.iter().map(text).collect();
            (body, texts)
        };
        let tag = |index| script_tag("[name=t]", index, ON_USE);
        let (body, holes) = insert(&Bytes::from_static(html.as_bytes()));
        let token = |index| format!("<input name=t>{}", tag(index));
        assert_eq!(holes, ["<b>1</b>".to_owned(), token(0), token(1), "<b>3</b>".to_owned()]);
        let expected = format!("<b>1</b><form><i>2</i>{}</form>{}<b>3</b>", token(0), token(1));
        assert_eq!(body, expected);
        assert_eq!(insert(&body), (body.clone(), holes.clone()), "the origin confirmed the page");
        let old = String::from_utf8(body.to_vec()).unwrap().replace("holes.js?v=", "holes.js?v=0");
        assert_eq!(insert(&old.into()), (body, holes), "the page has the tags of an older version");
    }

    #[test]
    fn a_token_has_a_placeholder() {
        let html =
            Bytes::from_static(b"<b>1</b><form><input value=a><input value=''></form><meta content=\"b\"><b>2</b>");
        let rules = HoleRules::parse("/p b <- .; /p input <- token; /p meta <- token").unwrap();
        let rules: Vec<_> = rules.of_path("/p").collect();
        let insert = |body: Bytes| {
            let found = find(&LolHtml, &rules, "/p?a", &body).now_or_never().unwrap().unwrap();
            let (body, holes) = found.into_page(body, Vec::new());
            let last = holes.last().unwrap().range.clone();
            assert_eq!((are_in_order(&holes, body.len()), &body[last]), (true, b"<b>2</b>".as_slice()));
            body
        };
        let body = insert(html);
        let token = |selector: &str| {
            Placeholder { page: "/p?a".to_owned(), selector: selector.to_owned(), form: String::new(), index: 0 }
                .encode()
        };
        let (input, meta) = (
            format!("<input value={}><script", token("input")),
            format!("<meta content=\"{}\"><script", token("meta")),
        );
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains(&input) && text.contains(&meta) && text.contains("<input value=''><script"), "{text}");
        assert_eq!(insert(body.clone()), body, "the origin confirmed the page");
    }

    #[test]
    fn only_the_token_of_a_script_is_a_hole() {
        let html = "<script>user = 'Ann'; csrf = 'a'</script><script>user = 'Ann'</script><b>1</b>";
        let holes = find_in(html, "/p script <- token; /p b <- .");
        let texts: Vec<_> = holes.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["a", "<b>1</b>"]);
    }

    #[test]
    fn a_token_within_a_hole_has_a_script() {
        let rules = HoleRules::parse("/p form <- .; /p [name=t] <- token").unwrap();
        let rules: Vec<_> = rules.of_path("/p").collect();
        let body = Bytes::from_static(b"<form><input name=t></form>");
        let found = find(&LolHtml, &rules, "/p", &body).now_or_never().unwrap().unwrap();
        let (body, holes) = found.into_page(body, Vec::new());
        assert_eq!((holes.len(), &holes[0].range), (1, &(0..body.len())));
        assert!(body.ends_with(b"data-on-use></script></form>"));
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
        // An element within a fragment, its whole content, an empty one, and one that also overlaps the next element.
        let elements = [1..2, 2..3, 5..7, 9..9, 11..12, 13..16].map(|range| hole(range, &HoleContent::User));
        let included = [0..4, 5..7, 8..10, 10..14].map(|range| hole(range, &include));
        let holes = joined(elements.to_vec(), included.to_vec());
        assert_eq!(
            holes.iter().map(|hole| (hole.range.clone(), hole.include().is_some())).collect::<Vec<_>>(),
            [(0..4, true), (5..7, false), (8..10, true), (11..12, false), (13..16, false)]
        );
        let element = HoleContent::Element { selector: "#mini".into(), index: 0 };
        let holes = joined(vec![hole(5..7, &element)], vec![hole(5..7, &include)]);
        assert!(holes.len() == 1 && holes[0].include().is_some(), "the fragment is the element");
    }
}
