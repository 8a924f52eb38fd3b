//! Dangers: a stored page would show one visitor's data to another, or would replace a visitor's own page.

use edgefront::config::rules::{CookieKind, CookieRules};
use http::HeaderValue;
use serde::Serialize;

use super::{
    advice::{Rule, path_pattern},
    difference::Difference,
    examine::Examined,
    visitor::{Visitor, Visitors},
};

/// One danger at one kind of page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Danger {
    pub kind: String,
    pub example: String,
    pub pages: usize,
    pub sentence: String,
    pub differences: Vec<Difference>,
    pub remedy: &'static str,
    /// Rules that protect the visitors behind edgefront.
    pub rules: Vec<Rule>,
}

const PATH_RISK: &str = "none for visitors: these pages always come from the shop.";
const COOKIE_RISK: &str = "none for visitors: those with this cookie always get pages of their own.";

const REMEDY: &str = "let the shop send Cache-Control: private for this page. A response that is public must be the same for all \
    visitors (RFC 9111, section 5.2.2.9).";

/// The dangers of the pages of one kind.
pub fn of_kind(kind: &str, pages: &[&Examined], visitors: &Visitors, rules: &CookieRules) -> Vec<Danger> {
    let between_renders = pages.iter().filter_map(|page| between_renders(kind, page));
    let of_visits = pages.iter().flat_map(|page| {
        let cookies = visitors.with_cookies(&page.url);
        page.visits.iter().filter_map(move |visit| {
            let own = cookies.iter().find(|(visitor, _)| *visitor == visit.visitor).map(|(_, cookies)| cookies);
            if visit.differences.is_empty() || !(page.is_declared_shared || visit.gets_stored_page) {
                return None;
            }
            let who = visit.visitor.subject();
            let protected = "; edgefront's rules protect them, but other caches do not know these rules";
            let sentence = match (page.is_declared_shared, visit.gets_stored_page) {
                (true, true) => {
                    format!("The shop declares this page public, but {who} get another one. They would lose their own.")
                }
                (true, false) => format!("The shop declares this page public, but {who} get another one{protected}."),
                (false, _) => {
                    format!("edgefront would store this page, but {who} get another one. They would lose their own.")
                }
            };
            let rules =
                if visit.gets_stored_page { personal_cookies(visit.visitor, own, rules, kind) } else { Vec::new() };
            Some(danger(kind, page, sentence, visit.differences.clone(), rules))
        })
    });
    let mut dangers: Vec<Danger> = Vec::new();
    for danger in between_renders.chain(of_visits) {
        match dangers.iter_mut().find(|known| known.sentence == danger.sentence) {
            Some(known) => known.pages += 1,
            None => dangers.push(danger),
        }
    }
    dangers
}

/// Two visitors without cookies get different pages.
fn between_renders(kind: &str, page: &Examined) -> Option<Danger> {
    let differences = page.renders_differ.as_ref().filter(|differences| !differences.is_empty())?;
    let sentence = match (page.verdict.is_ok(), page.is_declared_shared) {
        (true, true) => {
            "Leak: the shop declares this page public, but two visitors get different ones. One would see the other's."
        }
        (true, false) => {
            "Leak: edgefront would store this page, but two visitors get different ones. One would see the other's."
        }
        (false, true) => {
            "The shop declares this page public, but two visitors get different ones. edgefront does not store it."
        }
        (false, false) => return None,
    };
    let rules = if page.verdict.is_ok() { personal_path(kind) } else { Vec::new() };
    Some(danger(kind, page, sentence.to_owned(), differences.clone(), rules))
}

fn danger(kind: &str, page: &Examined, sentence: String, differences: Vec<Difference>, rules: Vec<Rule>) -> Danger {
    Danger {
        kind: kind.to_owned(),
        example: page.url.to_string(),
        pages: 1,
        sentence,
        differences,
        remedy: REMEDY,
        rules,
    }
}

/// Makes the visitor's cookies personal. A visitor without such a cookie needs a rule for the path.
fn personal_cookies(visitor: Visitor, cookies: Option<&HeaderValue>, rules: &CookieRules, kind: &str) -> Vec<Rule> {
    let text = cookies.and_then(|cookies| cookies.to_str().ok()).unwrap_or_default();
    let pairs = text.split(';').filter_map(|cookie| cookie.trim().split_once('='));
    let unknown = pairs.filter(|(name, value)| rules.kind(name, value) == CookieKind::Unknown);
    let rule =
        |(name, _): (&str, &str)| Rule { variable: "COOKIES_PERSONAL", value: name.to_owned(), risk: COOKIE_RISK };
    let proposed: Vec<_> = unknown.map(rule).collect();
    if proposed.is_empty() || visitor == Visitor::WithAnalytics { personal_path(kind) } else { proposed }
}

fn personal_path(kind: &str) -> Vec<Rule> {
    let path = path_pattern(kind);
    path.map(|value| Rule { variable: "PATHS_PERSONAL", value, risk: PATH_RISK }).into_iter().collect()
}
