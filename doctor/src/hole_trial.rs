//! Looks for holes: elements that contain everything by which a visitor's own page differs from the stored one. With rules for
//! them, this visitor gets the stored page, too.

use std::rc::Rc;

use edgefront::{config::rules::CookieKind, page_cache::PageKey};
use http::HeaderValue;
use xtask::failure::Failure;

use super::{
    advice::{Rule, path_pattern},
    elements,
    examine::{Examined, Examiner},
    pieces::Pieces,
    settings::Settings,
    shop::Shop,
    tokens::CsrfTokens,
    visitor::{self, Visitor, Visitors},
};

/// Most pages of a kind that are examined with the rules.
const MAX_PAGES: usize = 3;
/// Most rules for a kind.
const MAX_RULES: usize = 5;

const HOLE_RISK: &str = "each view by such a visitor costs the shop one request, as without edgefront, but the page \
    begins at once. A part that differs for other accounts only, such as prices for groups or a link for staff, shows what a \
    visitor without cookies sees.";
const COOKIE_RISK: &str = "none beyond that of HOLES: pages without holes come from the shop.";

/// The trial of holes for the pages of one kind.
pub struct HoleTrial<'a> {
    pub shop: &'a Rc<Shop>,
    pub visitors: &'a Visitors,
    /// As the user gave them. Their personal cookies stay personal.
    pub given: &'a Settings,
    /// With the rules that are proposed so far.
    pub settings: &'a Settings,
}

/// Rules that work, and the settings with them.
pub struct Holes {
    pub rules: Vec<Rule>,
    pub settings: Settings,
}

impl HoleTrial<'_> {
    /// Looks for holes of `pages`, which are of the kind `kind`. None: no visitor's page differs, no holes cover the
    /// differences, or the shop does not answer.
    ///
    /// # Errors
    /// When a proposed rule is not a valid setting.
    pub async fn run(&self, kind: &str, pages: &[&Examined]) -> Result<Option<Holes>, Failure> {
        let Some(pattern) = path_pattern(kind) else { return Ok(None) };
        for visitor in [Visitor::SignedIn, Visitor::WithOwnCookies] {
            let differs = |page: &&&Examined| {
                let mut visits = page.visits.iter().filter(|visit| visit.visitor == visitor);
                visits.any(|visit| !visit.differences.is_empty() && !visit.gets_stored_page)
            };
            let Some(page) = pages.iter().find(differs) else { continue };
            let cookies = self.visitors.with_cookies(&page.url).into_iter().find(|(own, _)| *own == visitor);
            let Some((_, cookies)) = cookies else { continue };
            let Some(names) = self.hole_cookies(&cookies)? else { continue };
            let Some(selectors) = self.selectors(page, &cookies).await? else { continue };
            let holes = self.rules(&pattern, &selectors, &names);
            if self.is_safe(&holes.settings, pages, visitor).await? {
                return Ok(Some(holes));
            }
        }
        Ok(None)
    }

    /// The names of the visitor's cookies that would change only holes. None if there are none, or the user says that one is
    /// personal.
    fn hole_cookies(&self, cookies: &HeaderValue) -> Result<Option<Vec<String>>, Failure> {
        let rules = self.given.config()?.page.cookies;
        let names = visitor::identifying_cookies(cookies, &rules);
        let is_open = |name: &String| matches!(rules.kind(name, ""), CookieKind::Unknown | CookieKind::Hole);
        let may_be_hole =
            |name: &String| is_open(name) && (rules.holes.contains(name) || visitor::may_be_personal(name, &rules));
        Ok(Some(names).filter(|names| !names.is_empty() && names.iter().all(may_be_hole)))
    }

    /// The selectors that cover the differences of the visitor's own page. None if none do.
    async fn selectors(&self, page: &Examined, cookies: &HeaderValue) -> Result<Option<Vec<String>>, Failure> {
        let app = super::render::edgefront(self.settings, self.shop)?;
        let Ok(key) = PageKey::of_url(page.url.as_str(), &app.config.page.urls) else { return Ok(None) };
        let examiner = Examiner { app: app.clone(), shop: self.shop, visitors: self.visitors };
        let pages = async {
            let shared = [examiner.render(&key).await?, examiner.render(&key).await?];
            let own = [
                examiner.own_page(&key, &page.url, cookies).await?,
                examiner.own_page(&key, &page.url, cookies).await?,
            ];
            Some((shared, own))
        };
        let Some((shared, own)) = pages.await else { return Ok(None) };
        let pieces = |html: &str, again: &str| Pieces::of(html, CsrfTokens::Covered).compared_with(again);
        let (shared, own) = (pieces(&shared[0].text(), &shared[1].text()), pieces(&own[0].text(), &own[1].text()));
        let selectors = elements::covering(&shared, &own);
        Ok(selectors.filter(|selectors| (1..=MAX_RULES).contains(&selectors.len())))
    }

    fn rules(&self, pattern: &str, selectors: &[String], cookies: &[String]) -> Holes {
        let holes = selectors.iter().map(|selector| format!("{pattern} {selector} <- ."));
        let rules = holes.map(|value| Rule { variable: "HOLES", value, risk: HOLE_RISK });
        let cookies =
            cookies.iter().map(|name| Rule { variable: "COOKIES_HOLES", value: name.clone(), risk: COOKIE_RISK });
        let rules: Vec<_> = rules.chain(cookies).collect();
        let mut settings = self.settings.clone();
        for Rule { variable, value, .. } in &rules {
            if *variable == "COOKIES_HOLES" {
                // A proposal for another kind of page made it personal, which holes would not change.
                settings = settings.without_entry("COOKIES_PERSONAL", value);
            }
            settings = settings.with_rule(variable, value);
        }
        Holes { rules, settings }
    }

    /// Returns whether the visitor gets the stored page with these settings, and nothing outside of the holes differs.
    async fn is_safe(&self, settings: &Settings, pages: &[&Examined], visitor: Visitor) -> Result<bool, Failure> {
        let app = super::render::edgefront(settings, self.shop)?;
        let examiner = Examiner { app, shop: self.shop, visitors: self.visitors };
        for page in pages.iter().take(MAX_PAGES) {
            let Some(with_rules) = examiner.examine(&page.url).await else { return Ok(false) };
            let mut visits = with_rules.visits.iter().filter(|visit| visit.visitor == visitor);
            let is_served = visits.any(|visit| visit.gets_stored_page && visit.differences.is_empty());
            if with_rules.unsafe_to_share().is_some() || with_rules.verdict.is_err() || !is_served {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
