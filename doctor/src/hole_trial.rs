//! Looks for holes: elements that contain everything by which the signed-in visitor's own page differs from the stored one.
//! With rules for them, such visitors get the stored page, too.

use std::rc::Rc;

use edgefront::{
    config::rules::{CookieKind, PathPatterns},
    page_cache::PageKey,
};
use http::{HeaderMap, HeaderValue};
use xtask::failure::Failure;

use super::{
    advice::{HOLE_COOKIE_RISK, Rule, path_pattern},
    carts::cart_paths,
    elements,
    examine::{A_SECOND, Examined, Examiner, Visit},
    kinds::is_locale_segment,
    pieces::Pieces,
    render,
    settings::Settings,
    shop::Shop,
    visitor::{self, Visitor, Visitors},
};

/// Most pages of a kind that are compared, and then examined with the rules.
const MAX_PAGES: usize = 3;
/// Most rules for a kind.
const MAX_RULES: usize = 6;

const HOLE_RISK: &str = "each view by such a visitor costs the shop one request, as without edgefront, but the page \
    begins at once. A part that differs for other accounts only, such as prices for groups, a link for staff or the \
    language of the account, shows what a visitor without cookies sees. So does a part that depends on a country, a store or a tax \
    that the session keeps, if CHOICES lacks the address at which visitors choose it.";

/// The warning if the sample probably lacks the page with the account's basket.
const NO_BASKET: &str = "these pages have baskets of their own, and no examined page shows the account's, so no holes are proposed: start \
    the doctor at the page that shows it";

const RENEWED_RISK: &str = "pages with holes do not renew this cookie, so it must live longer than a visit.";

/// The elements that cover the differences of one page.
enum Covering {
    Selectors {
        selectors: Vec<String>,
        /// The names of the visitor's cookies to which the page gives another value.
        renewed: Vec<String>,
    },
    /// The cause, as a part of a sentence: see [`elements::covering`].
    NotCovered(String),
    NoAnswer,
}

/// The trial of holes for the pages of one kind.
pub struct HoleTrial<'a> {
    pub shop: &'a Rc<Shop>,
    pub visitors: &'a Visitors,
    /// As the user gave them. Their personal cookies stay personal.
    pub given: &'a Settings,
    /// With the rules that are proposed so far.
    pub settings: &'a Settings,
    /// The whole sample.
    pub sample: &'a [Examined],
}

/// The result of a trial.
pub enum HoleOutcome {
    Works(Holes),
    /// The signed-in visitor's page differs outside of all elements: a warning.
    NotCovered(String),
    /// The signed-in visitor's page does not differ, the rules are not safe, or the shop does not answer.
    NoRule,
}

/// Rules that work, and the settings with them.
pub struct Holes {
    pub rules: Vec<Rule>,
    pub settings: Settings,
}

impl HoleTrial<'_> {
    /// Looks for holes of `pages`, which are of the kind `kind`.
    ///
    /// # Errors
    /// When a proposed rule is not a valid setting.
    pub async fn run(&self, kind: &str, pages: &[&Examined]) -> Result<HoleOutcome, Failure> {
        let Some(pattern) = path_pattern(kind) else { return Ok(HoleOutcome::NoRule) };
        let differs = |page: &&&Examined| {
            signed_in(page).is_some_and(|visit| !visit.differences.is_empty() && !visit.gets_stored_page)
        };
        // The basket may be on one page of the kind only.
        let mut pages = pages.to_vec();
        let differences = |page: &&Examined| signed_in(page).map_or(0, |visit| visit.differences.len());
        pages.sort_by_key(|page| std::cmp::Reverse(differences(page)));
        let is_same = |pair: &[&Examined]| matches!(pair, [one, other] if differences(one) == differences(other));
        if pages.iter().any(|page| has_own_cart(page, kind)) && pages.windows(2).all(is_same) {
            return Ok(HoleOutcome::NotCovered(NO_BASKET.to_owned()));
        }
        let (mut selectors, mut renewed) = (Vec::new(), Vec::new());
        let mut cookies_of_holes = None;
        for page in pages.iter().filter(differs).take(MAX_PAGES) {
            let mut visitors = self.visitors.with_cookies(&page.url).into_iter();
            let Some((_, cookies)) = visitors.find(|(visitor, _)| *visitor == Visitor::SignedIn) else {
                return Ok(HoleOutcome::NoRule);
            };
            let Some(names) = self.hole_cookies(&cookies)? else { return Ok(HoleOutcome::NoRule) };
            eprintln!("...  looking for holes of {}", page.url);
            match self.covering(page, &cookies).await? {
                Covering::Selectors { selectors: of_page, renewed: cookies } => {
                    selectors.extend(of_page);
                    renewed.extend(cookies.into_iter().filter(|name| names.contains(name)));
                }
                Covering::NotCovered(cause) => return Ok(HoleOutcome::NotCovered(not_covered(&names, &cause))),
                Covering::NoAnswer => return Ok(HoleOutcome::NoRule),
            }
            cookies_of_holes = Some(names);
        }
        let Some(names) = cookies_of_holes else { return Ok(HoleOutcome::NoRule) };
        selectors.sort();
        selectors.dedup();
        if selectors.is_empty() || selectors.len() > MAX_RULES {
            return Ok(HoleOutcome::NoRule);
        }
        renewed.sort();
        renewed.dedup();
        let holes = self.rules(&pattern, &selectors, &names, &renewed);
        // With the rules for other kinds, these may be too many.
        if holes.settings.config().is_err() || !self.is_safe(&holes.settings, &pattern, &pages).await? {
            return Ok(HoleOutcome::NoRule);
        }
        Ok(HoleOutcome::Works(holes))
    }

    /// The names of the visitor's cookies that would change only holes. None if there are none, or the user says that one is
    /// personal.
    fn hole_cookies(&self, cookies: &HeaderValue) -> Result<Option<Vec<String>>, Failure> {
        let (rules, proposed) = (self.given.config()?.page.cookies, self.settings.config()?.page.cookies);
        let Some(cookies) = visitor::without_varied(cookies, &proposed) else { return Ok(None) };
        let mut names = visitor::identifying_cookies(&cookies, &rules);
        names.retain(|name| proposed.csrf.as_ref() != Some(name));
        let is_open = |name: &String| matches!(rules.kind(name, ""), CookieKind::Unknown | CookieKind::Hole);
        let may_be_hole =
            |name: &String| is_open(name) && (rules.holes.contains(name) || visitor::may_be_personal(name, &rules));
        Ok(Some(names).filter(|names| !names.is_empty() && names.iter().all(may_be_hole)))
    }

    /// The elements that cover the differences of the visitor's own page.
    async fn covering(&self, page: &Examined, cookies: &HeaderValue) -> Result<Covering, Failure> {
        let app = render::edgefront(self.settings, self.shop)?;
        let Ok(key) = PageKey::of_url(page.url.as_str(), &app.config.page.urls) else { return Ok(Covering::NoAnswer) };
        let examiner = Examiner { app: app.clone(), shop: self.shop, visitors: self.visitors };
        let variant = visitor::variant(cookies, &app.config.page).unwrap_or_default();
        let pages = async {
            let first = (examiner.variant(&key, &variant).await?, examiner.own_page(&key, &page.url, cookies).await?);
            tokio::time::sleep(A_SECOND).await;
            let second = (examiner.variant(&key, &variant).await?, examiner.own_page(&key, &page.url, cookies).await?);
            Some((first, second))
        };
        let Some(((shared, own), (shared_again, own_again))) = pages.await else { return Ok(Covering::NoAnswer) };
        let pieces = |html: &str, again: &str| Pieces::of(html, examiner.csrf_tokens()).compared_with(again);
        // The second request had the old value of each renewed cookie. If that value no longer counts, the page is not covered.
        let renewed = renewed(cookies, &own.headers);
        let renewed = renewed.filter(|name| !app.config.page.cookies.is_dropped(name, key.path())).collect();
        let (shared, own) = (pieces(&shared.text(), &shared_again.text()), pieces(&own.text(), &own_again.text()));
        let selectors = elements::covering(&shared, &own);
        Ok(selectors.map_or_else(Covering::NotCovered, |selectors| Covering::Selectors { selectors, renewed }))
    }

    fn rules(&self, pattern: &str, selectors: &[String], cookies: &[String], renewed: &[String]) -> Holes {
        let holes = selectors.iter().map(|selector| format!("{pattern} {selector} <- ."));
        let holes = holes.map(|value| Rule { variable: "HOLES", value, risk: HOLE_RISK });
        let cookie = |name: &String| Rule { variable: "COOKIES_HOLES", value: name.clone(), risk: HOLE_COOKIE_RISK };
        // Without this rule, the browser requests the content a second time, for the cookie.
        let dropped = |name: &String| {
            let value = format!("{name}@{pattern}");
            Rule { variable: "COOKIES_DROPPED", value, risk: RENEWED_RISK }
        };
        let rules: Vec<_> = holes.chain(cookies.iter().map(cookie)).chain(renewed.iter().map(dropped)).collect();
        // A proposal for another kind of page may have made a cookie personal. Such visitors get no holes.
        let without = |settings: Settings, name: &String| settings.without_cookie(name);
        let settings = cookies.iter().fold(self.settings.clone(), without).with_rules(&rules);
        Holes { rules, settings }
    }

    /// Returns whether the visitor gets the stored page with these settings, and nothing outside of the holes differs.
    async fn is_safe(&self, settings: &Settings, pattern: &str, pages: &[&Examined]) -> Result<bool, Failure> {
        let app = render::edgefront(settings, self.shop)?;
        let examiner = Examiner { app, shop: self.shop, visitors: self.visitors };
        for page in pages.iter().take(MAX_PAGES) {
            let Some(with_rules) = examiner.examine(&page.url).await else { return Ok(false) };
            let is_served = |visit: &Visit| visit.gets_stored_page && visit.differences.is_empty();
            let is_served = signed_in(&with_rules).is_some_and(is_served);
            if with_rules.unsafe_to_share().is_some() || with_rules.verdict.is_err() || !is_served {
                return Ok(false);
            }
        }
        // `*` stands for slashes, too, so the pages of other kinds may have the holes.
        let paths = PathPatterns::parse(pattern).unwrap_or_default();
        let is_of_kind = |page: &Examined| pages.iter().any(|own| own.url == page.url);
        let others = self.sample.iter().filter(|page| paths.contains(&page.path) && !is_of_kind(page));
        for page in others.take(MAX_PAGES) {
            let Some(with_rules) = examiner.examine(&page.url).await else { return Ok(false) };
            if signed_in(&with_rules).is_some_and(|visit| visit.gets_stored_page && !visit.differences.is_empty()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns whether a form of the page is sent to a cart that other pages of the kind do not have, such as `/events/ball/cart/add`. A
/// language or country has a cart for all of its pages.
fn has_own_cart(page: &Examined, kind: &str) -> bool {
    page.posts_to.iter().any(|target| {
        let carts = [page.path.as_str(), ""].map(|path| cart_paths(target, path, kind).unwrap_or_default());
        let mut segments = carts[0].split('/').zip(carts[1].split('/'));
        segments.any(|(of_kind, own)| of_kind != own && !is_locale_segment(own))
    })
}

/// The names of the cookies to which a response gives another value than the request had.
fn renewed(request: &HeaderValue, response: &HeaderMap) -> impl Iterator<Item = String> {
    let changes = |(name, value): &(String, String)| visitor::pairs(request).all(|pair| pair != (name, value));
    let set = render::set_cookie_pairs(response).into_iter().filter(changes);
    set.map(|(name, _)| visitor::name_in_rules(&name)).collect::<Vec<_>>().into_iter()
}

/// The warning that no holes cover the page of visitors with these cookies.
fn not_covered(cookies: &[String], cause: &str) -> String {
    let names = cookies.join(", ");
    format!("no holes cover the signed-in visitor's page: {cause}. Visitors with {names} get pages of their own")
}

/// The visit of the signed-in visitor. None without `--login`.
fn signed_in(page: &Examined) -> Option<&Visit> {
    page.visits.iter().find(|visit| visit.visitor == Visitor::SignedIn)
}
