//! Cookies that put each new visitor into one of a few groups by chance: an A/B test, or the server of a load balancer.

use std::collections::{BTreeMap, BTreeSet};

use edgefront::config::rules::{CookieKind, CookieRules};

use super::{advice::Rule, examine::Examined, negotiation::Finding, tokens};

/// With more values, a cookie may identify a visitor.
const MAX_GROUPS: usize = 4;
/// A value on fewer pages may belong to one visitor, or to one page.
const MIN_PAGES: usize = 3;

const RISK: &str = "visitors with another value get pages of their own; add a value when the shop gets another group. The first page of \
    each new visitor comes from the shop.";

/// A cookie of groups, with its values.
pub struct GroupCookie {
    name: String,
    values: BTreeSet<String>,
}

/// The cookies of groups that have no rule yet.
pub fn find(sample: &[Examined], rules: &CookieRules) -> Vec<GroupCookie> {
    let mut pages: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for page in sample {
        for (name, value) in &page.assigned_cookies {
            pages.entry(name).or_default().entry(value).or_default().insert(page.url.as_str());
        }
    }
    let is_open = |name: &str| !tokens::is_csrf_cookie(name) && rules.kind(name, "") == CookieKind::Unknown;
    let found = pages.into_iter().filter(|(name, pages)| is_open(name) && are_groups(pages));
    let groups = found.map(|(name, pages)| GroupCookie {
        name: name.to_owned(),
        values: pages.into_keys().map(str::to_owned).collect(),
    });
    groups.filter(|groups| CookieRules::parse_varied(&groups.rule()).is_ok()).collect()
}

/// Returns whether the values are assigned by chance. `pages`: the addresses of the pages that set each value.
fn are_groups(pages: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let has_several = |url: &&str| pages.values().filter(|urls| urls.contains(url)).count() > 1;
    (2..=MAX_GROUPS).contains(&pages.len())
        && pages.values().all(|urls| urls.len() >= MIN_PAGES)
        && pages.values().flatten().any(has_several)
}

impl GroupCookie {
    fn rule(&self) -> String {
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        format!("{}={}", self.name, values.join("|"))
    }

    /// The cookie of the first group.
    pub fn cookie(&self) -> String {
        format!("{}={}", self.name, self.values.first().map(String::as_str).unwrap_or_default())
    }

    pub fn finding(&self) -> Finding {
        let (name, rule) = (&self.name, self.rule());
        let note = format!(
            "the cookie {name} puts each new visitor into one of {} groups by chance, as in an A/B test: COOKIES_VARIED {rule} gives each \
             group shared pages. Risk: {}",
            self.values.len(),
            RISK.trim_end_matches('.')
        );
        Finding { note, rules: vec![Rule { variable: "COOKIES_VARIED", value: rule, risk: RISK }] }
    }
}
