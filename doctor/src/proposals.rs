//! The rules that the doctor proposes for a kind of pages: those that store the pages, their holes, and their writes.

use edgefront::page_cache::{PageKey, Reason};
use url::Url;
use xtask::failure::Failure;

use super::{
    advice::{self, Renders, Rule},
    carts, danger,
    diagnosis::Diagnosis,
    examine::Examined,
    hole_trial::{HoleOutcome, HoleTrial},
    kinds, login,
    render::NotStored,
    report::{KindReport, average},
    settings::Settings,
    siblings::PagesOfKind,
    trial::{Outcome, Trial},
};

/// The remedy for a page with a token that is in no element that a rule can name, or that has an unusual name.
const SESSION_TOKEN: &str = "No rule covers the token of the session, so this page stays personal. See \
    docs/holes.md#tokens-of-a-session.";

/// The heading of rules that a trial found safe.
const TRIED: &str = "tried, and safe:";

impl Diagnosis {
    /// Looks for rules for the pages that are not stored, unless they are in danger. Returns the settings with them.
    pub(super) async fn find_rules(
        &self,
        report: &mut KindReport,
        of_kind: &PagesOfKind,
        endangered: &[Url],
    ) -> Result<Settings, Failure> {
        let (mut settings, pages) = (self.settings.clone(), self.pages(&of_kind.pages));
        let refused = refused(&pages);
        let Some((page, _)) = refused.first() else { return Ok(settings) };
        // A trial with CSRF_COOKIE shows whether such tokens stay a difference.
        let is_unsafe = |page: &&&Examined| page.lasting_differences().any(|found| !found.kind.is_token());
        if let Some(page) = pages.iter().find(is_unsafe) {
            let is_silent = |why: &NotStored| matches!(why.reason, Reason::NoItem | Reason::SetCookie);
            let is_silent = page.verdict.as_ref().is_err_and(is_silent);
            let are_nonces = page.differs_in_nonces();
            // Then only a known name says that the page is one visitor's.
            let renders = if are_nonces { Renders::Equal } else { Renders::Different };
            let personal = advice::keep_personal(&report.kind, renders).filter(|_| is_silent);
            if let Some((text, rule)) = personal {
                return Ok(report.keep_personal(text, rule, &self.settings));
            }
            let remedy = if are_nonces {
                format!(
                    "None: the nonces of {} differ at each request. To share it, {}",
                    page.url,
                    danger::REMEDY_NONCES
                )
            } else {
                format!("None: two visitors' renders of {} differ, so it must not be shared.", page.url)
            };
            report.remedy = Some(remedy);
            return Ok(settings);
        }
        if endangered.contains(&page.url) {
            report.remedy = Some("None: these pages are in danger, so no rule may share them.".to_owned());
            return Ok(settings);
        }
        let (shop, visitors, sample) = (&self.shop, &self.visitors, self.examined.as_slice());
        let siblings = if of_kind.is_joined { pages.as_slice() } else { &[] };
        let other_tokens = &of_kind.other_tokens;
        eprintln!("...  trying rules for {}", report.kind);
        let (mut is_stored, mut failures) = (false, Vec::new());
        for (page, count) in refused {
            let trial = Trial { shop, visitors, settings: &settings, sample, endangered, siblings, other_tokens };
            match trial.run(&report.kind, page).await? {
                Outcome::Works { rules, settings: with_rules } => {
                    report.hit_ratio_with_rules += average([(1.0, count), (0.0, pages.len() - count)].into_iter());
                    report.rules.extend(rules);
                    (is_stored, settings) = (true, with_rules);
                }
                Outcome::Differs { rules, differences, at, .. } => {
                    let are_tokens = differences.iter().all(|found| found.kind.is_token());
                    let of_session = are_tokens && at == page.url.as_str() && !differences.is_empty();
                    report.differences.extend(differences);
                    let shared = || {
                        let names = advice::names(&rules);
                        format!("None: {names} would store {at}, which is not the same for all visitors.")
                    };
                    failures.push((page, if of_session { SESSION_TOKEN.to_owned() } else { shared() }));
                }
                Outcome::Personal(text, rule) => return Ok(report.keep_personal(text, rule, &self.settings)),
                Outcome::NoRule(text) => failures.push((page, text)),
            }
        }
        let failure = failures.into_iter().next();
        if is_stored {
            let text = if report.rules.is_empty() { "the other proposed rules store these pages, too." } else { TRIED };
            report.remedy = Some(text.to_owned());
            let warning =
                |(page, text): (&Examined, String)| format!("pages such as {} stay unstored. {text}", page.url);
            report.warning = report.warning.take().or_else(|| failure.map(warning));
        } else {
            report.remedy = failure.map(|(_, text)| text);
        }
        Ok(settings)
    }

    /// Looks for holes of shared pages, for visitors who otherwise get pages of their own. Returns the settings with them.
    pub(super) async fn find_holes(
        &self,
        report: &mut KindReport,
        indices: &[usize],
        given: &Settings,
    ) -> Result<Settings, Failure> {
        let pages = self.pages(indices);
        let (settings, sample) = (&self.settings, self.examined.as_slice());
        let trial = HoleTrial { shop: &self.shop, visitors: &self.visitors, given, settings, sample };
        let holes = match trial.run(&report.kind, &pages).await? {
            HoleOutcome::Works(holes) => holes,
            HoleOutcome::NotCovered(warning) => {
                report.warning.get_or_insert(warning);
                return Ok(self.settings.clone());
            }
            HoleOutcome::NoRule => return Ok(self.settings.clone()),
        };
        report.remedy.get_or_insert_with(|| TRIED.to_owned());
        report.rules.extend(holes.rules);
        Ok(holes.settings)
    }

    /// A rule for items at the paths of a kind that is stored without one, so that a purge can name an item. Returns the settings with it.
    ///
    /// No visitor gets more shared pages, except those at these paths for which the shop states nothing.
    pub(super) fn add_item_route(&self, report: &mut KindReport, of_kind: &PagesOfKind) -> Result<Settings, Failure> {
        let urls = self.settings.config()?.page.urls;
        let route =
            kinds::item_route(&report.kind).filter(|_| !of_kind.is_joined && report.hit_ratio_with_rules >= 1.0);
        let Some(value) = route else { return Ok(self.settings.clone()) };
        let rule = Rule { variable: "ITEM_ROUTES", value, risk: advice::STORED_ITEM_RISK };
        let settings = self.settings.with_rules([&rule]);
        let with_rule = settings.config()?.page.urls;
        let is_item =
            |page: &Examined, urls| PageKey::of_url(page.url.as_str(), urls).is_ok_and(|key| key.item().is_some());
        let is_new = |page: &Examined| is_item(page, &with_rule) && !is_item(page, &urls);
        let (own, others): (Vec<_>, Vec<_>) =
            self.examined.iter().enumerate().partition(|(index, _)| of_kind.pages.contains(index));
        let is_safe = own.iter().all(|(_, page)| is_new(page)) && !others.iter().any(|(_, page)| is_new(page));
        if !is_safe {
            return Ok(self.settings.clone());
        }
        report.remedy.get_or_insert_with(|| "for purges of an item:".to_owned());
        report.rules.push(rule);
        Ok(settings)
    }

    /// Rules for writes that change only what their visitor sees: forms that a shared page sends to itself or to the cart, and
    /// logins. Returns the settings with them.
    pub(super) fn add_write_rules(&self, report: &mut KindReport, indices: &[usize]) -> Settings {
        let pages = self.pages(indices);
        let (config, mut rules) = (&self.app.config, Vec::new());
        let kind = advice::path_pattern(&report.kind);
        if let Some(value) = login::route(&report.kind)
            && !config.origin.login_routes.contains(&value)
        {
            rules.push(Rule { variable: "LOGIN_ROUTES", value, risk: login::RISK });
        } else if report.hit_ratio_with_rules > 0.0 {
            let to_itself = kind.filter(|_| pages.iter().any(|page| page.posts_to.contains(&page.path)));
            let forms = pages.iter().flat_map(|page| page.posts_to.iter().map(|target| (target, &page.path)));
            let to_cart = forms.filter_map(|(target, path)| carts::cart_paths(target, path, &report.kind));
            let routes = [&config.page.urls.personal_writes, &config.origin.cart_routes];
            let is_new = |value: &String| !routes.iter().any(|routes| routes.contains(value));
            for value in to_itself.into_iter().chain(to_cart).filter(is_new) {
                let rule = Rule { variable: "WRITES_PERSONAL", value, risk: advice::WRITE_RISK };
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        let settings = self.settings.with_rules(&rules);
        report.rules.extend(rules);
        settings
    }
}

/// One page for each reason why pages are not stored, and the number of these pages. The most frequent reason comes first, because its
/// rules often store other pages, too.
fn refused<'a>(pages: &[&'a Examined]) -> Vec<(&'a Examined, usize)> {
    let mut refused: Vec<(&Examined, usize)> = Vec::new();
    for page in pages.iter().filter(|page| page.verdict.is_err()) {
        match refused.iter_mut().find(|(known, _)| known.is_refused_as(page)) {
            Some((_, count)) => *count += 1,
            None => refused.push((page, 1)),
        }
    }
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    refused
}
