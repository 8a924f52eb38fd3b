//! Visible content that changes at each request, also for one visitor: random products, a counter, or the question of a form. It belongs
//! to no visitor.
//!
//! Without cookies, a shop knows a visitor only by the address and the headers, and those of the doctor never change. But a page may
//! name its reader without knowing them: a number in a queue, or a code of a discount. Such a value is new in each render. Values that
//! occur again, in another render or on another page, are drawn from a list that all visitors see.

use std::{
    collections::{BTreeSet, HashSet},
    ops::Range,
};

use edgefront::page_cache::PageKey;
use http::HeaderValue;
use url::Url;

use super::{
    chance,
    difference::{Difference, DifferenceKind},
    examine::Examiner,
    pieces::Pieces,
    render::{SharedRender, set_cookie_pairs},
    shop::Page,
    visitor::Visitor,
};

/// Pages of one visitor that are compared. With fewer, random content is often the same by chance.
const REQUESTS: usize = 3;
/// Renders in which the values of random content may occur again.
const MORE_RENDERS: usize = 8;

/// Returns whether a difference is no random content: tokens and ids belong to one visitor, although they may change at each request.
pub fn is_personal(found: &Difference) -> bool {
    let is_other = matches!(found.kind, DifferenceKind::CookieValue | DifferenceKind::Status);
    found.kind.is_token() || is_other || found.changes.has_id
}

impl Examiner<'_> {
    /// Returns whether a page has random content: it differs between two visitors without cookies, and all these places also change
    /// between requests of one session. If the page is not stored, or the shop sets no cookies, its values must also
    /// [occur again](Examiner::occur_again). None as for [`Examiner::examine`].
    pub async fn has_random_content(
        &self,
        first: &SharedRender,
        differences: &[Difference],
        (key, url): (&PageKey, &Url),
        own: &[(Visitor, Page, HeaderValue)],
    ) -> Option<bool> {
        let is_visible = differences.iter().any(|found| found.kind == DifferenceKind::VisibleText);
        let rules = &self.app.config.page.cookies;
        let has_session = |own: &&(Visitor, Page, HeaderValue)| {
            own.0 != Visitor::WithAnalytics && chance::keeps_session(&own.1, &own.2, rules)
        };
        if !is_visible || differences.iter().any(is_personal) {
            return Some(false);
        }
        // The shop sets no cookie for a visitor without an account.
        let has_no_cookies = |(visitor, page, _): &(Visitor, Page, HeaderValue)| match visitor {
            Visitor::SignedIn => true,
            Visitor::WithAnalytics => set_cookie_pairs(&page.headers).is_empty(),
            Visitor::WithoutCookies | Visitor::WithOwnCookies => false,
        };
        if own.iter().all(has_no_cookies) && self.occur_again(first, differences, key).await? {
            return Some(true);
        }
        let Some((_, page, cookies)) = own.iter().find(has_session) else { return Some(false) };
        if first.stored.is_err() && !self.occur_again(first, differences, key).await? {
            return Some(false);
        }
        let pieces = |html: &str| Pieces::of(html, self.csrf_tokens());
        let mut pages = vec![pieces(&page.text())];
        while pages.len() < REQUESTS {
            pages.push(pieces(&self.own_page(key, url, cookies).await?.text()));
        }
        let places: Vec<_> = differences.iter().map(|found| found.pieces.clone()).collect();
        Some(is_random(&pieces(&first.text()), &places, &pages))
    }

    /// Returns whether the tags and texts by which two visitors' pages differ occur in other renders, or on other pages.
    async fn occur_again(&self, first: &SharedRender, differences: &[Difference], key: &PageKey) -> Option<bool> {
        let pieces = |render: &SharedRender| Pieces::of(&render.text(), self.csrf_tokens());
        let one = pieces(first);
        let places = differences.iter().filter_map(|found| one.texts().get(found.pieces.clone()));
        let mut open: BTreeSet<String> = places.flatten().cloned().collect();
        // The first page may lack the content, so that of a second one counts, too.
        let second = pieces(&self.render(key).await?);
        let changed = one.changes_to(&second).into_iter().filter_map(|(_, at)| second.texts().get(at));
        open.extend(changed.flatten().cloned());
        let is_in_both = |text: &String| one.texts().contains(text) && second.texts().contains(text);
        open.retain(|text| !(self.shop.has_shown(text) || is_in_both(text)));
        for _ in 0..MORE_RENDERS {
            if open.is_empty() {
                break;
            }
            let other = pieces(&self.render(key).await?);
            open.retain(|text| !other.texts().contains(text));
        }
        Some(open.is_empty())
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
