//! `Vary: Accept-Language`, `User-Agent` and `Accept`: the few values that select a page of the shop. Without a rule, each
//! spelling of a browser selects a page of its own, and edgefront keeps at most 16 of them.
//!
//! - `languages`, `devices`, `accept`: the values of the three headers, for `HEADERS_NORMALIZED`.
//! - `countries`: the country of the visitor, from a header or the address.
//! - `compare`: the comparison of two pages.
//!
//! A shop keeps a visitor's `preference`, a language or a currency, in one of two ways. The crawl collects the addresses and the cookies:
//! - `switchers`: links and forms after which the session keeps it. Each becomes a rule of `CHOICES`. `effects`: links without a name of a
//!   preference.
//! - `preference_cookies`: cookies that keep it. `varied_rule`: each becomes a rule of `COOKIES_VARIED`.

mod accept;
mod compare;
mod countries;
mod devices;
mod effects;
mod languages;
mod preference;
mod preference_cookies;
mod switchers;
mod varied_rule;

use std::collections::BTreeSet;

use edgefront::{config::PageConfig, page_cache::Reason};
use http::{HeaderName, header};
use url::Url;

pub use self::{
    countries::{Countries, differences_by_address},
    effects::{chosen_cookies, lines_without},
    languages::{is_language, other_homes},
    preference::is_switch,
    preference_cookies::{PreferenceCookie, preference_cookies},
    switchers::Switchers,
};
use self::{preference::Preference, varied_rule::VariedRule};
use super::{advice::Rule, examine::Examined, shop::Shop, template::Template};

/// Most pages that are compared for one header.
const MAX_PAGES: usize = 3;

const VARIABLE: &str = "HEADERS_NORMALIZED";
const HEADERS_VARIED: &str = "HEADERS_VARIED";
const VARIED_RISK: &str = "each page is stored once for each value.";
const SAME_RISK: &str = "all clients get the same page, also those that were not compared.";

const COOKIE_RISK: &str =
    "visitors with another value get pages of their own; add a value when the shop gets a language or a currency.";

/// A note for the operator, and the rules that it proposes.
pub struct Finding {
    pub note: String,
    pub rules: Vec<Rule>,
}

/// Looks for the values of the headers that select pages which edgefront stores. A header that a rule names already is left
/// out. Pages are compared even without `Vary`, because a shop that does not share them need not send it. `Accept` is compared only if `Vary` names it: otherwise all shared renders send the same one.
///
/// `set`: the cookies of preferences that the shop has set.
pub async fn find(
    shop: &Shop,
    examined: &[Examined],
    config: &PageConfig,
    set: &BTreeSet<PreferenceCookie>,
) -> Vec<Finding> {
    let shared = shareable(examined);
    let mut findings = Vec::new();
    for name in [header::ACCEPT_LANGUAGE, header::USER_AGENT, header::ACCEPT] {
        if config.headers.normalized.iter().any(|rule| rule.name == name) {
            continue;
        }
        let varying: Vec<_> = shared.iter().filter(|page| page.varies_by(name.as_str())).copied().collect();
        let is_named = !varying.is_empty();
        let pages = spread(if is_named { &varying } else { &shared });
        if pages.is_empty() || name == header::ACCEPT && !is_named {
            continue;
        }
        eprintln!("...  comparing {} pages by {name}", pages.len());
        let urls: Vec<_> = pages.iter().map(|page| &page.url).collect();
        let values = match name {
            header::USER_AGENT => devices::values(shop, &urls, is_named).await,
            header::ACCEPT => accept::values(shop, &pages).await,
            _ => {
                let found = languages::find(shop, &urls).await;
                let cookie = found.as_ref().and_then(|found| found.cookie.as_ref());
                let cookie = cookie.filter(|rule| !rule.is_known(&config.cookies));
                findings.extend(cookie.map(|rule| Finding::of_cookie(Preference::Language, rule)));
                found.map(|found| found.values)
            }
        };
        let Some(values) = values else { continue };
        let is_always_same = matches!(&values, Values::Listed { values, .. } if values.is_empty());
        if is_named || !is_always_same {
            findings.push(Finding::of(&name, varying.len(), values));
        }
    }
    let has_language = findings.iter().flat_map(|found| &found.rules).any(|rule| rule.variable == "COOKIES_VARIED");
    let all = [Preference::Language, Preference::Currency, Preference::PlaceOrTax];
    let wanted = all.get(usize::from(has_language)..).unwrap_or_default();
    let urls: Vec<_> = spread(&shared).into_iter().map(|page| &page.url).collect();
    let rules = preference_cookies::rules(shop, &urls, set, wanted).await.into_iter();
    let rules = rules.filter(|(_, rule)| !rule.is_known(&config.cookies));
    findings.extend(rules.map(|(preference, rule)| Finding::of_cookie(preference, &rule)));
    findings
}

/// Looks for the ways by which the shop learns the visitor's country. A header that a rule names already is left out. None if the shop
/// does not answer. `product`: a page of the largest kind.
pub async fn find_countries(
    shop: &Shop,
    examined: &[Examined],
    config: &PageConfig,
    product: Option<&Url>,
) -> Option<Countries> {
    let pages = shareable(examined);
    let product = pages.iter().find(|page| Some(&page.url) == product);
    let mut urls: Vec<_> = product.into_iter().chain(pages.first()).map(|page| &page.url).collect();
    urls.dedup();
    eprintln!("...  comparing {} pages by country", urls.len());
    countries::find(shop, &urls, |name| config.headers.varied.iter().any(|known| known == name)).await
}

/// The pages that edgefront may share.
fn shareable(examined: &[Examined]) -> Vec<&Examined> {
    let is_personal = |page: &Examined| page.verdict.as_ref().is_err_and(|why| why.reason == Reason::Path);
    // No rule stores an error page for long, so it needs none.
    let is_error = |page: &Examined| page.template.as_ref().is_some_and(Template::is_error);
    examined.iter().filter(|page| !is_personal(page) && !is_error(page) && page.vary.is_some()).collect()
}

/// At most [`MAX_PAGES`] pages from the whole list.
fn spread<'a>(pages: &[&'a Examined]) -> Vec<&'a Examined> {
    let step = pages.len().div_ceil(MAX_PAGES).max(1);
    pages.iter().step_by(step).copied().collect()
}

/// The values of a header that select a page.
enum Values {
    /// Without values, the page is always the same.
    Listed { values: Vec<&'static str>, risk: &'static str },
    /// A client with this value of `Accept` gets a format of its own, which a rule would replace by HTML.
    OwnFormat(&'static str),
    /// The pages differ, and no rule is known that fits.
    Unknown,
}

impl Finding {
    fn of_cookie(preference: Preference, rule: &VariedRule) -> Self {
        let (name, noun) = (&rule.cookie.name, preference.noun());
        let note = format!(
            "the cookie {name} selects the {noun} of pages: COOKIES_VARIED {rule} stores a shared page for each value. \
             Risk: {COOKIE_RISK}"
        );
        let rules = vec![Rule { variable: "COOKIES_VARIED", value: rule.to_string(), risk: COOKIE_RISK }];
        Self { note: note.trim_end_matches('.').to_owned(), rules }
    }

    /// `varying`: number of pages whose `Vary` names the header. 0: pages differ although none does.
    fn of(name: &HeaderName, varying: usize, values: Values) -> Self {
        let (remedy, mut rules) = match values {
            Values::Unknown => (format!("list the values that select a page in {VARIABLE}"), Vec::new()),
            Values::OwnFormat(client) => {
                let cause =
                    format!("no rule is safe, because a client that sends `{client}` gets another format or an error");
                (format!("{cause}; let the shop send other formats at other addresses"), Vec::new())
            }
            Values::Listed { values, risk } => {
                let rule = Rule { variable: VARIABLE, value: format!("{name}={}", values.join("|")), risk };
                let pages = if values.is_empty() { "page for all clients" } else { "page for each value" };
                (format!("{VARIABLE} {} leaves one {pages}. Risk: {risk}", rule.value), vec![rule])
            }
        };
        let remedy = remedy.trim_end_matches('.');
        if varying == 0 {
            let each = if rules.is_empty() { "each spelling of it then selects a page of its own, so " } else { "" };
            rules.push(Rule { variable: HEADERS_VARIED, value: name.to_string(), risk: VARIED_RISK });
            let note = format!(
                "pages differ by {name}, but no Vary names it, so visitors would get each other's variant: HEADERS_VARIED \
                 {name} keeps them apart, and {each}{remedy}"
            );
            return Self { note, rules };
        }
        let note = format!(
            "{varying} pages vary by {name}. Each spelling of it selects a page of its own, so browsers rarely find a stored \
             one: {remedy}"
        );
        Self { note, rules }
    }
}
