//! Cookies that keep a visitor's choice of a language or a currency. In most shops a link or a form sets them, and no page
//! does. The doctor follows links. It sends no forms, so it tries cookies of well-known names.

use std::collections::{BTreeMap, BTreeSet};

use html5gum::StartTag;
use http::{HeaderMap, HeaderValue, header};
use url::Url;

use super::{
    compare::{ComparedPage, get_with_cookie},
    languages::{MAX_LANGUAGES, is_language, language_of, primary},
};
use crate::{
    render::set_cookie_pairs,
    shop::{Page, Shop},
    tokens::{attribute, start_tags},
};

/// Currencies of shops (ISO 4217).
const CURRENCIES: [&str; 42] = [
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP", "EUR", "GBP", "HKD",
    "HUF", "IDR", "ILS", "INR", "ISK", "JPY", "KRW", "MAD", "MXN", "MYR", "NOK", "NZD", "PEN", "PHP", "PLN", "RON",
    "RSD", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "ZAR",
];

/// A name in the address of a link that chooses.
const NAMES: [&str; 3] = ["lang", "locale", "currenc"];

/// Cookies in which well-known software keeps a choice: Django, Next.js, Nuxt, Polylang and i18next first.
const KNOWN_NAMES: [(Choice, &str); 10] = [
    (Choice::Language, "django_language"),
    (Choice::Language, "NEXT_LOCALE"),
    (Choice::Language, "i18n_redirected"),
    (Choice::Language, "pll_language"),
    (Choice::Language, "i18next"),
    (Choice::Language, "locale"),
    (Choice::Language, "language"),
    (Choice::Language, "lang"),
    (Choice::Currency, "currency"),
    (Choice::Currency, "CURRENCY"),
];

/// A choice that a visitor makes by a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    Language,
    Currency,
}

impl Choice {
    /// The choice of which this is a value, such as `de_DE` or `EUR`.
    fn of(value: &str) -> Option<Self> {
        if is_language(value) {
            return Some(Self::Language);
        }
        CURRENCIES.iter().any(|code| code.eq_ignore_ascii_case(value)).then_some(Self::Currency)
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::Language => "language",
            Self::Currency => "currency",
        }
    }

    /// Returns whether a page fits a value of the cookie. A page rarely announces its currency.
    fn fits(self, page: &Page, value: &str) -> bool {
        self == Self::Currency || language_of(page).is_some_and(|own| primary(&own) == primary(value))
    }
}

/// A cookie that the shop has set to a value of a choice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChosenCookie {
    choice: Choice,
    name: String,
    value: String,
    /// The value of the cookie `{name}.sig`, in which the package `cookies` of Node.js keeps a signature.
    signature: Option<String>,
}

/// The cookies of a response that keep a choice.
pub fn chosen_cookies(headers: &HeaderMap) -> impl Iterator<Item = ChosenCookie> {
    let pairs = set_cookie_pairs(headers);
    let signatures: BTreeMap<_, _> =
        pairs.iter().filter_map(|(name, value)| Some((name.strip_suffix(".sig")?.to_owned(), value.clone()))).collect();
    pairs.into_iter().filter_map(move |(name, value)| {
        let signature = signatures.get(&name).cloned();
        Some(ChosenCookie { choice: Choice::of(&value)?, name, value, signature })
    })
}

/// Returns whether a link chooses a language or a currency, such as `/currency/USD` or `?lang=de`.
pub fn is_choice(url: &Url) -> bool {
    let address = url[url::Position::BeforePath..].to_ascii_lowercase();
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_value = Choice::of(last).is_some() || url.query_pairs().any(|(_, value)| Choice::of(&value).is_some());
    has_value && NAMES.iter().any(|name| address.contains(name))
}

/// Rules of `COOKIES_VARIED`, one for each choice. A cookie has a rule if it selects one of the pages.
pub async fn rules(shop: &Shop, pages: &[&Url], set: &BTreeSet<ChosenCookie>) -> Vec<(Choice, String)> {
    let mut cookies: BTreeMap<(Choice, &str), Vec<&ChosenCookie>> = BTreeMap::new();
    for cookie in set {
        cookies.entry((cookie.choice, &cookie.name)).or_default().push(cookie);
    }
    let mut rules = BTreeMap::new();
    for ((choice, _), values) in cookies.into_iter().filter(|(_, values)| values.len() <= MAX_LANGUAGES) {
        if !rules.contains_key(&choice) && selects_one(shop, pages, &values).await {
            rules.insert(choice, rule(&values));
        }
    }
    if let Some(url) = pages.first()
        && let Some(default) = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await
    {
        for (choice, name) in KNOWN_NAMES {
            if !rules.contains_key(&choice)
                && let Some(values) = selecting((shop, url), &default, (choice, name)).await
            {
                rules.insert(choice, rule(&values.iter().collect::<Vec<_>>()));
            }
        }
    }
    rules.into_iter().collect()
}

/// The cookies of a name for the values that the page offers. None if they do not select the page.
async fn selecting(
    (shop, url): (&Shop, &Url),
    default: &ComparedPage<'_>,
    (choice, name): (Choice, &str),
) -> Option<Vec<ChosenCookie>> {
    let mut values = offered(&default.page.text(), choice);
    // The page's own language last: if the first other one changes nothing, neither does the cookie.
    values.sort_by_key(|value| choice == Choice::Language && choice.fits(&default.page, value));
    let (mut found, mut differs) = (Vec::new(), false);
    for value in values.into_iter().take(MAX_LANGUAGES) {
        let cookie = ChosenCookie { choice, name: name.to_owned(), value, signature: None };
        let page = get_with_cookie(shop, url, &cookie.header()?).await?;
        differs |= !default.is_like(&page);
        if !differs && choice == Choice::Language {
            return None;
        }
        found.extend(choice.fits(&page, &cookie.value).then_some(cookie));
    }
    (differs && found.len() > 1).then_some(found)
}

/// The values of a choice that the elements of a form or the page's translations offer.
fn offered(html: &str, choice: Choice) -> Vec<String> {
    let value = |tag: StartTag<()>| match &**tag.name {
        b"option" | b"button" | b"input" => attribute(&tag, "value"),
        b"a" | b"link" => attribute(&tag, "hreflang"),
        _ => None,
    };
    let values: BTreeSet<_> =
        start_tags(html).filter_map(value).filter(|value| Choice::of(value) == Some(choice)).collect();
    values.into_iter().collect()
}

fn rule(values: &[&ChosenCookie]) -> String {
    let Some(first) = values.first() else { return String::new() };
    let list: BTreeSet<_> = values.iter().map(|cookie| cookie.value.as_str()).collect();
    let rule = format!("{}={}", first.name, list.into_iter().collect::<Vec<_>>().join("|"));
    if first.signature.is_some() { format!("{rule}, {}.sig", first.name) } else { rule }
}

/// Returns whether a cookie selects one of the pages.
async fn selects_one(shop: &Shop, pages: &[&Url], values: &[&ChosenCookie]) -> bool {
    for url in pages {
        match selects((shop, url), values).await {
            // The shop does not answer.
            None => return false,
            Some(true) => return true,
            Some(false) => {}
        }
    }
    false
}

/// Returns whether the page fits each of these values of a cookie, and differs for one of them.
async fn selects((shop, url): (&Shop, &Url), values: &[&ChosenCookie]) -> Option<bool> {
    let default = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
    let mut differs = false;
    for cookie in values {
        let page = get_with_cookie(shop, url, &cookie.header()?).await?;
        if !cookie.choice.fits(&page, &cookie.value) {
            return Some(false);
        }
        differs |= !default.is_like(&page);
    }
    Some(differs)
}

impl ChosenCookie {
    /// The value of the header `Cookie`.
    fn header(&self) -> Option<HeaderValue> {
        let Self { name, value, signature, .. } = self;
        let signature = signature.as_ref().map(|signature| format!("; {name}.sig={signature}"));
        HeaderValue::from_str(&format!("{name}={value}{}", signature.unwrap_or_default())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_choose_are_known_by_name_and_value() {
        let is_choice = |address: &str| is_choice(&Url::parse("https://shop.example").unwrap().join(address).unwrap());
        for address in ["/currency/USD", "/setCurrency?code=eur", "/de/lang/en_GB/", "/?locale=de&to=/"] {
            assert!(is_choice(address), "{address}");
        }
        for address in ["/newsletter?confirm=no", "/currency/", "/usd", "/languages", "/no", "/lang/books"] {
            assert!(!is_choice(address), "{address}");
        }
    }
}
