//! The report on one kind of page, from its examined pages.

use edgefront::config::{
    PageConfig,
    rules::{CookieKind, CookieRules},
};

use super::{CookieReport, KindReport, ReasonReport, VisitorReport};
use crate::{
    advice::Rule,
    examine::{Examined, Visit},
    settings::Settings,
};

impl KindReport {
    /// The report on the pages of a kind, without a remedy.
    pub fn of(kind: &str, pages: &[&Examined], config: &PageConfig) -> Self {
        let differing =
            || pages.iter().filter_map(|page| page.renders_differ.as_ref()).filter(|found| !found.is_empty());
        let hit_ratio = hit_ratio(pages);
        let mut headers: Vec<_> = pages.iter().flat_map(|page| page.headers.iter().cloned()).collect();
        headers.sort();
        headers.dedup();
        Self {
            kind: kind.to_owned(),
            example: pages.first().map(|page| page.url.to_string()).unwrap_or_default(),
            pages: pages.len(),
            stored: pages.iter().filter(|page| page.verdict.is_ok()).count(),
            not_stored: reasons(pages),
            set_cookies: cookies(pages, &config.cookies),
            headers,
            warning: pages.iter().find(|page| page.verdict.is_ok()).and_then(|page| many_variants(page, config)),
            visitors: visitor_reports(pages),
            renders_differ: differing().count(),
            differences: differing().next().cloned().unwrap_or_default(),
            remedy: None,
            rules: Vec::new(),
            hit_ratio,
            hit_ratio_with_rules: hit_ratio,
        }
    }

    /// Notes the rule for pages of one visitor. Returns the settings with it.
    pub fn keep_personal(&mut self, text: String, rule: Rule, settings: &Settings) -> Settings {
        let settings = settings.with_rules([&rule]);
        self.remedy = Some(text);
        self.rules = vec![rule];
        settings
    }
}

/// The share of requests that stored pages answer; see [`ESTIMATE`](super::ESTIMATE).
fn hit_ratio(pages: &[&Examined]) -> f64 {
    let visits = visits(pages).filter(|(_, visit)| visit.visitor.counts_for_hit_ratio());
    average(visits.map(|(page, visit)| (f64::from(u8::from(page.is_hit(visit))), 1)))
}

/// All visits, with their pages.
fn visits<'a>(pages: &[&'a Examined]) -> impl Iterator<Item = (&'a Examined, &'a Visit)> {
    pages.iter().flat_map(|page| page.visits.iter().map(move |visit| (*page, visit)))
}

/// The average of values with their weights; 0 without values.
#[expect(clippy::cast_precision_loss, reason = "at most 500 pages")]
pub fn average(values: impl Iterator<Item = (f64, usize)>) -> f64 {
    let (sum, weights) =
        values.fold((0.0, 0), |(sum, weights), (value, weight)| (value.mul_add(weight as f64, sum), weights + weight));
    if weights == 0 { 0.0 } else { sum / weights as f64 }
}

/// A header with many values splits the page into many copies, unless a rule lists the values.
fn many_variants(page: &Examined, config: &PageConfig) -> Option<String> {
    let has_rule = |name: &str| name == "cookie" || config.headers.normalized.iter().any(|rule| rule.name == name);
    let fields: Vec<_> = page.vary.as_ref()?.iter().filter(|name| !has_rule(name)).collect();
    let text = "one copy is stored for each value, at most 16 of a page, so visitors with different values share less";
    (!fields.is_empty()).then(|| format!("the page varies by {}: {text}", fields.join(", ")))
}

fn reasons(pages: &[&Examined]) -> Vec<ReasonReport> {
    let mut reasons: Vec<ReasonReport> = Vec::new();
    for why in pages.iter().filter_map(|page| page.verdict.as_ref().err()) {
        let reason = why.reason.as_str();
        match reasons.iter_mut().find(|known| known.reason == reason && known.cause == why.cause) {
            Some(known) => known.pages += 1,
            None => reasons.push(ReasonReport { reason, cause: why.cause.clone(), pages: 1 }),
        }
    }
    reasons
}

fn cookies(pages: &[&Examined], rules: &CookieRules) -> Vec<CookieReport> {
    let mut cookies: Vec<CookieReport> = Vec::new();
    for (page, name) in pages.iter().flat_map(|page| page.set_cookies.iter().map(move |name| (page, name))) {
        if cookies.iter().any(|known| known.name == *name) {
            continue;
        }
        let rule = match rules.kind(name, "") {
            CookieKind::Personal => "personal",
            CookieKind::Ignored => "ignored",
            CookieKind::Varied => "varied",
            CookieKind::Hole => "hole",
            CookieKind::Unknown if rules.varied.iter().any(|varied| varied.name == *name) => "varied",
            CookieKind::Unknown => "no rule",
        };
        cookies.push(CookieReport { name: name.clone(), rule, is_dropped: rules.is_dropped(name, &page.path) });
    }
    cookies
}

fn visitor_reports(pages: &[&Examined]) -> Vec<VisitorReport> {
    let mut reports: Vec<VisitorReport> = Vec::new();
    for (page, visit) in visits(pages) {
        let known = reports.iter().position(|report| report.visitor == visit.visitor);
        let index = known.unwrap_or_else(|| {
            let (visitor, differences) = (visit.visitor, Vec::new());
            let cookies = visit.cookies.clone();
            reports.push(VisitorReport {
                visitor,
                cookies,
                pages: 0,
                gets_stored_page: 0,
                own_page_differs: 0,
                differences,
            });
            reports.len() - 1
        });
        let Some(report) = reports.get_mut(index) else { continue };
        report.pages += 1;
        report.gets_stored_page += usize::from(page.is_hit(visit));
        report.own_page_differs += usize::from(!visit.differences.is_empty());
        if report.differences.is_empty() {
            report.differences.clone_from(&visit.differences);
        }
    }
    reports.sort_by_key(|report| report.visitor);
    reports
}
