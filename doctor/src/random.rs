//! Visible content that changes at each request, also for one visitor: random products, a counter, or the question of a form. It belongs
//! to no visitor.

use std::{collections::HashSet, ops::Range};

use edgefront::page_cache::PageKey;
use http::HeaderValue;
use url::Url;

use super::{
    chance,
    difference::{Difference, DifferenceKind},
    examine::Examiner,
    pieces::Pieces,
    render::SharedRender,
    shop::Page,
    visitor::Visitor,
};

/// Pages of one visitor that are compared. With fewer, random content is often the same by chance.
const REQUESTS: usize = 3;

impl Examiner<'_> {
    /// Returns whether a stored page has random content: its visible text differs between two visitors without cookies, and all these
    /// places also change between requests of one session. None as for [`Examiner::examine`].
    pub async fn has_random_content(
        &self,
        first: &SharedRender,
        differences: &[Difference],
        (key, url): (&PageKey, &Url),
        own: &[(Visitor, Page, HeaderValue)],
    ) -> Option<bool> {
        let is_visible = differences.iter().any(|found| found.kind == DifferenceKind::VisibleText);
        // Tokens and ids belong to one visitor, although they may change at each request.
        let is_personal = |found: &Difference| {
            found.kind.is_token() || found.kind == DifferenceKind::CookieValue || found.changes.has_id
        };
        let rules = &self.app.config.page.cookies;
        let has_session = |own: &&(Visitor, Page, HeaderValue)| {
            own.0 != Visitor::WithAnalytics && chance::keeps_session(&own.1, &own.2, rules)
        };
        let is_candidate = is_visible && first.stored.is_ok() && !differences.iter().any(is_personal);
        let Some((_, page, cookies)) = own.iter().find(has_session).filter(|_| is_candidate) else {
            return Some(false);
        };
        let pieces = |html: &str| Pieces::of(html, self.csrf_tokens());
        let mut pages = vec![pieces(&page.text())];
        while pages.len() < REQUESTS {
            pages.push(pieces(&self.own_page(key, url, cookies).await?.text()));
        }
        let places: Vec<_> = differences.iter().map(|found| found.pieces.clone()).collect();
        Some(is_random(&pieces(&first.text()), &places, &pages))
    }
}

/// Returns whether the pages of one visitor change at all places of the shared page. A piece that all of the visitor's pages have
/// there, and the shared page lacks, belongs to the visitor.
fn is_random(first: &Pieces, places: &[Range<usize>], own: &[Pieces]) -> bool {
    let texts: Vec<HashSet<&str>> = own.iter().map(|page| page.texts().iter().map(String::as_str).collect()).collect();
    let is_steady = |text: &&String| texts.iter().all(|texts| texts.contains(text.as_str()));
    let touches = |one: &Range<usize>, other: &Range<usize>| one.start <= other.end && other.start <= one.end;
    let changes: Vec<_> = own
        .iter()
        .flat_map(|page| first.changes_to(page).into_iter().map(|(at, at_own)| (at, page.texts().get(at_own))))
        .filter(|(at, _)| places.iter().any(|place| touches(at, place)))
        .collect();
    let is_of_visitor = |text: &&String| is_steady(text) && !first.texts().contains(text);
    let changes_at = |place: &Range<usize>| {
        let at_place = changes.iter().filter(|(at, _)| touches(at, place));
        at_place.flat_map(|(_, texts)| texts.iter().copied().flatten()).any(|text| !is_steady(&text))
    };
    !changes.iter().flat_map(|(_, texts)| texts.iter().copied().flatten()).any(|text| is_of_visitor(&text))
        && places.iter().all(changes_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{difference, tokens::CsrfTokens};

    fn is_random(one: &str, other: &str, own: [&str; 3]) -> bool {
        let pieces = |html: &str| Pieces::of(html, CsrfTokens::Personal);
        let (one, other) = (pieces(one), pieces(other));
        let places: Vec<_> = difference::between(&one, &other, &[]).into_iter().map(|found| found.pieces).collect();
        super::is_random(&one, &places, &own.map(pieces))
    }

    #[test]
    fn a_value_of_the_visitor_is_not_random() {
        let list = |names: [&str; 2]| {
            let items = names.map(|name| format!("<li><a href='/{name}'><img src={name}.png><b>{name}</b></a>"));
            format!("<p>Mug</p><ul>{}</ul><p>End</p>", items.concat())
        };
        let lists = [["cup", "jug"], ["jug", "vase"], ["vase", "bowl"], ["bowl", "cup"], ["pot", "jug"]].map(list);
        let [one, other, own @ ..] = lists.each_ref().map(String::as_str);
        assert!(is_random(one, other, own));
        assert!(!is_random(one, other, [own[0]; 3]), "one list of the visitor");
        let greeted = own.map(|page| page.replace("<p>Mug", "<i>Hello Ann</i><p>Mug"));
        assert!(is_random(one, other, greeted.each_ref().map(String::as_str)), "the name is at another place");
        let numbers = [1, 2, 7, 7, 7].map(|number| format!("<p>Visitor {number}</p>"));
        let pages: Vec<_> = lists.iter().zip(&numbers).map(|(list, number)| format!("{number}{list}")).collect();
        let [one, other, a, b, c] = &pages[..] else { panic!("five pages") };
        assert!(!is_random(one, other, [a, b, c]));
    }
}
