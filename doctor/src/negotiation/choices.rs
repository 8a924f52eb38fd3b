//! Cookies that keep a visitor's choice of a language or a currency. In most shops a link or a form sets them, and no page
//! does. The doctor follows links. It sends no forms, so it tries cookies of well-known names.

use std::collections::{BTreeMap, BTreeSet};

use html5gum::StartTag;
use http::{HeaderMap, HeaderValue, header};
use url::Url;

use super::{
    compare::{ComparedPage, get, get_with_cookie},
    languages::{MAX_LANGUAGES, is_language, language_in_path, language_of, primary},
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

/// Parts of addresses that choose.
const NAMES: [&str; 3] = ["language", "locale", "currenc"];
/// Whole words of such addresses. `lang` is also the beginning of words such as `langarmshirt`.
const WORDS: [&str; 8] =
    ["lang", "langs", "setlang", "changelang", "switchlang", "selectlang", "culture", "setculture"];

/// The cookie of ASP.NET Core for the language.
const ASP_NET: &str = ".AspNetCore.Culture";

/// The value of [`ASP_NET`], as browsers send it: `c=de|uic=de`.
fn asp_net_culture(language: &str) -> String {
    format!("c%3D{language}%7Cuic%3D{language}")
}

/// A choice that a visitor makes by a link or a form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    Language,
    Currency,
}

impl Choice {
    /// The choice of which this is a value, such as `de_DE` or `EUR`.
    pub fn of(value: &str) -> Option<Self> {
        if is_language(value) {
            return Some(Self::Language);
        }
        CURRENCIES.iter().any(|code| code.eq_ignore_ascii_case(value)).then_some(Self::Currency)
    }

    /// The choice of an address that [`names_choice`].
    pub fn named_in(address: &str) -> Self {
        if address.to_ascii_lowercase().contains("currenc") { Self::Currency } else { Self::Language }
    }

    /// Returns whether a cookie with these values keeps the choice.
    pub fn is_kept_by(self, name: &str, values: &[String]) -> bool {
        let named = || names_choice(name).then(|| Self::named_in(name));
        values.iter().find_map(|value| Self::of(value)).or_else(named) == Some(self)
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::Language => "language",
            Self::Currency => "currency",
        }
    }

    /// Cookies in which well-known software keeps the choice: Django, Next.js, Nuxt, Paraglide, Polylang, i18next and ASP.NET first.
    const fn known_names(self) -> &'static [&'static str] {
        match self {
            Self::Language => &[
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
            Self::Currency => &["currency", "CURRENCY"],
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

/// Returns whether an address is probably one that chooses a language or a currency, by its words.
pub fn names_choice(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let mut words = address.split(|character: char| !character.is_ascii_alphanumeric());
    NAMES.iter().any(|name| address.contains(name)) || words.any(|word| WORDS.contains(&word))
}

/// Returns whether a link chooses a language or a currency, such as `/currency/USD` or `?lang=de`.
pub fn is_choice(url: &Url) -> bool {
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_value = Choice::of(last).is_some() || url.query_pairs().any(|(_, value)| Choice::of(&value).is_some());
    has_value && names_choice(&url[url::Position::BeforePath..])
}

/// A rule of `COOKIES_VARIED` for each of these choices whose cookie selects one of the pages.
pub async fn rules(
    shop: &Shop,
    pages: &[&Url],
    set: &BTreeSet<ChosenCookie>,
    choices: &[Choice],
) -> Vec<(Choice, String)> {
    let mut rules = Vec::new();
    for choice in choices {
        let rule = match rule_of_set(shop, pages, set, *choice).await {
            Some(rule) => Some(rule),
            None => rule_of_known_names(shop, pages, *choice).await,
        };
        rules.extend(rule.map(|rule| (*choice, rule)));
    }
    rules
}

/// The rule for a cookie that the shop has set.
async fn rule_of_set(shop: &Shop, pages: &[&Url], set: &BTreeSet<ChosenCookie>, choice: Choice) -> Option<String> {
    let mut cookies: BTreeMap<&str, Vec<&ChosenCookie>> = BTreeMap::new();
    for cookie in set.iter().filter(|cookie| cookie.choice == choice) {
        cookies.entry(&cookie.name).or_default().push(cookie);
    }
    for values in cookies.into_values().filter(|values| values.len() <= MAX_LANGUAGES) {
        for url in pages {
            // None: the shop does not answer.
            let Some(selects) = selects((shop, url), &values).await else { break };
            if selects {
                return Some(rule(&values));
            }
        }
    }
    None
}

/// The rule for a cookie of a well-known name that selects the first page. If the addresses name the language, the cookie may select the
/// target of the redirect at `/`, as in Django.
async fn rule_of_known_names(shop: &Shop, pages: &[&Url], choice: Choice) -> Option<String> {
    let url = pages.first()?;
    let offered = offered(&get(shop, url, &header::ACCEPT_LANGUAGE, "").await?.text(), choice);
    if let Some(rule) = rule_of_known_names_at(shop, url, (choice, offered.clone())).await {
        return Some(rule);
    }
    let root = pages.iter().find(|url| language_in_path(url).is_some())?.join("/").ok()?;
    rule_of_known_names_at(shop, &root, (choice, offered)).await
}

/// The rule for a cookie of a well-known name that selects a page, or the target of a redirect. `values`: those that the shop offers.
async fn rule_of_known_names_at(shop: &Shop, url: &Url, (choice, mut values): (Choice, Vec<String>)) -> Option<String> {
    let default = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
    // The page's own language last: if the first other one changes nothing, neither does the cookie.
    values.sort_by_key(|value| choice == Choice::Language && choice.fits(&default.page, value));
    for name in choice.known_names() {
        let (mut found, mut differs) = (Vec::new(), false);
        for value in values.iter().take(MAX_LANGUAGES) {
            let cookie_value = if *name == ASP_NET { asp_net_culture(value) } else { value.clone() };
            let cookie = ChosenCookie { choice, name: (*name).to_owned(), value: cookie_value, signature: None };
            let page = get_with_cookie(shop, url, &cookie.header()?).await?;
            differs |= !default.is_like(&page);
            if !differs && choice == Choice::Language {
                break;
            }
            found.extend(choice.fits(&page, value).then_some(cookie));
        }
        if differs && found.len() > 1 {
            return Some(rule(&found.iter().collect::<Vec<_>>()));
        }
    }
    None
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
        for address in
            ["/newsletter?confirm=no", "/currency/", "/usd", "/languages", "/no", "/lang/books", "/langarm/de"]
        {
            assert!(!is_choice(address), "{address}");
        }
    }
}
