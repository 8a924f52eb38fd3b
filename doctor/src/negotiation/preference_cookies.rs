//! Cookies that keep a visitor's language or currency. In most shops a link or a form sets them, and no page does. The doctor
//! follows links. It sends no forms, so it tries cookies of well-known names.

use std::collections::{BTreeMap, BTreeSet};

use edgefront::config::rules::VariedCookie;
use html5gum::StartTag;
use http::{HeaderMap, HeaderValue, header};
use url::Url;

use super::{
    compare::{ComparedPage, get, get_with_cookie},
    languages::{MAX_LANGUAGES, language_in_path},
    preference::Preference,
    varied_rule::VariedRule,
};
use crate::{
    render::set_cookie_pairs,
    shop::Shop,
    tokens::{attribute, start_tags},
};

/// The cookie of ASP.NET Core for the language.
const ASP_NET: &str = ".AspNetCore.Culture";

/// The value of [`ASP_NET`], as browsers send it: `c=de|uic=de`.
fn asp_net_culture(language: &str) -> String {
    format!("c%3D{language}%7Cuic%3D{language}")
}

/// Cookies in which well-known software keeps a preference: Django, Next.js, Nuxt, Paraglide, Polylang, i18next and ASP.NET first.
const fn known_names(preference: Preference) -> &'static [&'static str] {
    match preference {
        Preference::Language => &[
            "django_language",
            "NEXT_LOCALE",
            "i18n_redirected",
            "PARAGLIDE_LOCALE",
            "pll_language",
            "i18next",
            ASP_NET,
            "locale",
            "language",
            "lang",
        ],
        Preference::Currency => &["currency", "CURRENCY"],
        Preference::PlaceOrTax => &[],
    }
}

/// A cookie that the shop has set to a value of a preference.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreferenceCookie {
    preference: Preference,
    name: String,
    value: String,
    /// The value of the cookie `{name}.sig`, in which the package `cookies` of Node.js keeps a signature.
    signature: Option<String>,
}

impl PreferenceCookie {
    /// A cookie that a link sets to a value of its own.
    pub const fn chosen(name: String, value: String) -> Self {
        Self { preference: Preference::PlaceOrTax, name, value, signature: None }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The cookies of a response that keep a preference.
pub fn preference_cookies(headers: &HeaderMap) -> impl Iterator<Item = PreferenceCookie> {
    let pairs = set_cookie_pairs(headers);
    let signatures: BTreeMap<_, _> =
        pairs.iter().filter_map(|(name, value)| Some((name.strip_suffix(".sig")?.to_owned(), value.clone()))).collect();
    pairs.into_iter().filter_map(move |(name, value)| {
        let signature = signatures.get(&name).cloned();
        Some(PreferenceCookie { preference: Preference::of(&value)?, name, value, signature })
    })
}

/// A rule of `COOKIES_VARIED` for each of these preferences whose cookie selects one of the pages.
pub async fn rules(
    shop: &Shop,
    pages: &[&Url],
    set: &BTreeSet<PreferenceCookie>,
    preferences: &[Preference],
) -> Vec<(Preference, VariedRule)> {
    let mut rules = Vec::new();
    for preference in preferences {
        let rule = match rule_of_set(shop, pages, set, *preference).await {
            Some(rule) => Some(rule),
            None if *preference == Preference::PlaceOrTax => None,
            None => rule_of_known_names(shop, pages, *preference).await,
        };
        rules.extend(rule.map(|rule| (*preference, rule)));
    }
    rules
}

/// The rule for a cookie that the shop has set.
async fn rule_of_set(
    shop: &Shop,
    pages: &[&Url],
    set: &BTreeSet<PreferenceCookie>,
    preference: Preference,
) -> Option<VariedRule> {
    let mut cookies: BTreeMap<&str, Vec<&PreferenceCookie>> = BTreeMap::new();
    for cookie in set.iter().filter(|cookie| cookie.preference == preference) {
        cookies.entry(&cookie.name).or_default().push(cookie);
    }
    for values in cookies.into_values().filter(|values| values.len() <= MAX_LANGUAGES) {
        for url in pages {
            // None: the shop does not answer.
            let Some(selects) = selects((shop, url), &values).await else { break };
            if selects {
                return rule(&values);
            }
        }
    }
    None
}

/// The rule for a cookie of a well-known name that selects the first page. If the addresses name the language, the cookie may select the
/// target of the redirect at `/`, as in Django.
async fn rule_of_known_names(shop: &Shop, pages: &[&Url], preference: Preference) -> Option<VariedRule> {
    let url = pages.first()?;
    let offered = offered(&get(shop, url, &header::ACCEPT_LANGUAGE, "").await?.text(), preference);
    if let Some(rule) = rule_of_known_names_at(shop, url, (preference, offered.clone())).await {
        return Some(rule);
    }
    let root = pages.iter().find(|url| language_in_path(url).is_some())?.join("/").ok()?;
    rule_of_known_names_at(shop, &root, (preference, offered)).await
}

/// The rule for a cookie of a well-known name that selects a page, or the target of a redirect. `values`: those that the shop offers.
async fn rule_of_known_names_at(
    shop: &Shop,
    url: &Url,
    (preference, mut values): (Preference, Vec<String>),
) -> Option<VariedRule> {
    let default = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
    // The page's own language last: if the first other one changes nothing, neither does the cookie.
    values.sort_by_key(|value| preference == Preference::Language && preference.fits(&default.page, value));
    for name in known_names(preference) {
        let (mut found, mut differs) = (Vec::new(), false);
        for value in values.iter().take(MAX_LANGUAGES) {
            let cookie_value = if *name == ASP_NET { asp_net_culture(value) } else { value.clone() };
            let cookie =
                PreferenceCookie { preference, name: (*name).to_owned(), value: cookie_value, signature: None };
            let page = get_with_cookie(shop, url, &cookie.header()?).await?;
            differs |= !default.is_like(&page);
            if !differs && preference == Preference::Language {
                break;
            }
            found.extend(preference.fits(&page, value).then_some(cookie));
        }
        if differs && found.len() > 1 {
            return rule(&found.iter().collect::<Vec<_>>());
        }
    }
    None
}

/// The values of a preference that the elements of a form or the page's translations offer.
fn offered(html: &str, preference: Preference) -> Vec<String> {
    let value = |tag: StartTag<()>| match &**tag.name {
        b"option" | b"button" | b"input" => attribute(&tag, "value"),
        b"a" | b"link" => attribute(&tag, "hreflang"),
        _ => None,
    };
    let values: BTreeSet<_> =
        start_tags(html).filter_map(value).filter(|value| Preference::of(value) == Some(preference)).collect();
    values.into_iter().collect()
}

/// The rule for these values of one cookie. None without values.
fn rule(cookies: &[&PreferenceCookie]) -> Option<VariedRule> {
    let first = cookies.first()?;
    let values: BTreeSet<_> = cookies.iter().map(|cookie| cookie.value.clone()).collect();
    let cookie = VariedCookie { name: first.name.clone(), values: values.into_iter().collect() };
    Some(VariedRule { cookie, is_signed: first.signature.is_some() })
}

/// Returns whether the page fits each of these values of a cookie, and differs for one of them.
async fn selects((shop, url): (&Shop, &Url), values: &[&PreferenceCookie]) -> Option<bool> {
    let default = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
    let mut differs = false;
    for cookie in values {
        let page = get_with_cookie(shop, url, &cookie.header()?).await?;
        if !cookie.preference.fits(&page, &cookie.value) {
            return Some(false);
        }
        differs |= !default.is_like(&page);
    }
    Some(differs)
}

impl PreferenceCookie {
    /// The value of the header `Cookie`.
    fn header(&self) -> Option<HeaderValue> {
        let Self { name, value, signature, .. } = self;
        let signature = signature.as_ref().map(|signature| format!("; {name}.sig={signature}"));
        HeaderValue::from_str(&format!("{name}={value}{}", signature.unwrap_or_default())).ok()
    }
}
