//! Pages with several versions by chance. A shop that streams a page sends its parts in the order in which their data arrive.
//! A difference by chance belongs to no visitor.

use std::time::Duration;

use edgefront::{
    config::rules::{CookieKind, CookieRules},
    page_cache::PageKey,
};
use http::HeaderValue;
use url::Url;

use super::{
    difference::{self, Difference, DifferenceKind},
    examine::{A_SECOND, Examiner},
    pieces::Pieces,
    render::{SharedRender, set_cookie_pairs},
    shop::Page,
    tokens,
    visitor::{self, Visitor},
};

/// Further renders of a page whose first two renders may differ by chance.
pub const MORE_RENDERS: usize = 3;

impl Examiner<'_> {
    /// A render for a visitor without cookies, and its differences from a render for another one. None as for
    /// [`Examiner::examine`].
    ///
    /// If the two renders [may differ by chance](may_be_chance), further visitors request the page. If two of them see the same page,
    /// the page has several versions by chance. They request it a second later, so that a clock has changed.
    pub async fn two_renders(&self, key: &PageKey) -> Option<(SharedRender, Vec<Difference>)> {
        let first = self.render(key).await?;
        let second = self.render(key).await?;
        let differences = self.compare(&first, second.status, &second.text(), &[]);
        if !may_be_chance(&differences) {
            return Some((first, differences));
        }
        tokio::time::sleep(A_SECOND).await;
        let mut earlier = vec![first, second];
        for _ in 0..MORE_RENDERS {
            let other = self.render(key).await?;
            for known in &earlier {
                let differences = self.compare(&other, known.status, &known.text(), &[]);
                if !may_be_chance(&differences) {
                    return Some((other, differences));
                }
            }
            earlier.push(other);
        }
        Some((earlier.into_iter().next()?, differences))
    }

    /// Invisible differences between two renders that also change between two requests of one visitor, such as a time or the id of
    /// a request in a script. None as for [`Examiner::examine`].
    ///
    /// The id of a cart that the shop creates for each request is no noise, and neither is the image of a captcha.
    pub async fn noise_of_requests(
        &self,
        first: &SharedRender,
        differences: &[Difference],
        (key, url): (&PageKey, &Url),
        own: &[(Visitor, Page, HeaderValue)],
    ) -> Option<Vec<Difference>> {
        let has_form = !tokens::post_actions(&first.text()).is_empty();
        let is_candidate = |found: &&Difference| {
            let belongs_to_visitor = found.changes.has_id || found.changes.has_image && has_form;
            found.kind == DifferenceKind::Content && !belongs_to_visitor
        };
        let candidates: Vec<_> = differences.iter().filter(is_candidate).cloned().collect();
        let rules = &self.app.config.page.cookies;
        let is_session = |(name, value): &(String, String)| rules.kind(name, value) != CookieKind::Varied;
        let has_no_session =
            |own: &&(Visitor, Page, HeaderValue)| !set_cookie_pairs(&own.1.headers).iter().any(is_session);
        // A cookie for the language would change the whole page, so varied cookies are left out.
        let with_session = own.iter().find(|(visitor, page, cookies)| {
            *visitor == Visitor::WithOwnCookies && keeps_session(page, cookies, rules)
        });
        let with_session = with_session.and_then(|(_, page, cookies)| {
            let others = visitor::without_varied(cookies, rules)?;
            Some((Some(page).filter(|_| others == *cookies), others))
        });
        let without_session =
            || own.first().filter(has_no_session).map(|(_, page, cookies)| (Some(page), cookies.clone()));
        let own = with_session.or_else(without_session).filter(|_| !candidates.is_empty());
        let Some((known, cookies)) = own else { return Some(Vec::new()) };
        let pieces = |html: &str| Pieces::of(html, self.csrf_tokens());
        let mut own = match known {
            Some(page) => pieces(&page.text()),
            None => pieces(&self.own_page(key, url, &cookies).await?.text()),
        };
        let (mut noise, mut own_changes) = (Vec::new(), Vec::new());
        // A time may change only once a second.
        for pause in [Duration::ZERO, A_SECOND] {
            tokio::time::sleep(pause).await;
            let again = self.own_page(key, url, &cookies).await?.text().into_owned();
            own.mark_changes(&again);
            own_changes.extend(difference::between(&own, &pieces(&again), &[]));
            let found = difference::between(&pieces(&first.text()), &own, &[]);
            let changes = |candidate: &&Difference| {
                let is_at_place = |own: &&Difference| own.has_place_of(candidate);
                let mut of_place = own_changes.iter().filter(is_at_place);
                of_place.any(|own| own.changes.cover(&candidate.changes, 0))
                    && found
                        .iter()
                        .any(|found| found.is_changing && (candidate.explains(found) || found.explains(candidate)))
            };
            noise = candidates.iter().filter(changes).cloned().collect();
            if noise.len() == candidates.len() {
                break;
            }
        }
        Some(noise)
    }
}

/// Returns whether a visitor's requests belong to one session. If a cookie that the page sets is not sent here, as a `Secure` one over
/// http, each request starts another session.
pub fn keeps_session(page: &Page, cookies: &HeaderValue, rules: &CookieRules) -> bool {
    let is_sent = |name: &str| visitor::pairs(cookies).any(|(sent, _)| sent == name);
    let set = set_cookie_pairs(&page.headers);
    set.iter().all(|(name, value)| is_sent(name) || rules.kind(name, value) == CookieKind::Varied)
}

/// The places of a page that differ between renders for everybody.
#[derive(Default)]
pub struct Noise {
    pub places: Vec<Difference>,
    pub has_later_render: bool,
}

impl Noise {
    pub fn remove_from(&self, differences: &mut Vec<Difference>) {
        differences.retain(|found| !self.places.iter().any(|noise| noise.explains(found)));
    }
}

/// Returns whether chance may explain differences: visitors see different texts, or only one of the pages has a tag or a script. Streamed
/// parts that arrive at the same time share a script in Marko.
pub fn may_be_chance(differences: &[Difference]) -> bool {
    let is_extra =
        |found: &Difference| found.kind == DifferenceKind::Content && (found.one.is_empty() || found.other.is_empty());
    !looks_same(differences) || differences.iter().any(is_extra)
}

/// Returns whether visitors see the same page.
pub fn looks_same(differences: &[Difference]) -> bool {
    !differences.iter().any(|found| matches!(found.kind, DifferenceKind::VisibleText | DifferenceKind::Status))
}
