//! The preferences of a visitor that a shop keeps, and the addresses at which visitors set them.

use url::Url;

use super::languages::{is_language, language_of, primary};
use crate::shop::Page;

/// Currencies of shops (ISO 4217).
const CURRENCIES: [&str; 42] = [
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP", "EUR", "GBP", "HKD",
    "HUF", "IDR", "ILS", "INR", "ISK", "JPY", "KRW", "MAD", "MXN", "MYR", "NOK", "NZD", "PEN", "PHP", "PLN", "RON",
    "RSD", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "ZAR",
];

/// Parts of addresses that set a preference.
const NAMES: [&str; 3] = ["language", "locale", "currenc"];
/// Whole words of such addresses. `lang` is also the beginning of words such as `langarmshirt`.
const WORDS: [&str; 8] =
    ["lang", "langs", "setlang", "changelang", "switchlang", "selectlang", "culture", "setculture"];

/// A preference that a shop keeps for a visitor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    Language,
    Currency,
}

impl Preference {
    /// The preference with this value, such as `de_DE` or `EUR`.
    pub fn of(value: &str) -> Option<Self> {
        if is_language(value) {
            return Some(Self::Language);
        }
        CURRENCIES.iter().any(|code| code.eq_ignore_ascii_case(value)).then_some(Self::Currency)
    }

    /// The preference in a text that [`names_preference`].
    pub fn named_in(address: &str) -> Self {
        if address.to_ascii_lowercase().contains("currenc") { Self::Currency } else { Self::Language }
    }

    /// Returns whether a cookie with these values keeps the preference.
    pub fn is_kept_by(self, name: &str, values: &[String]) -> bool {
        let named = || names_preference(name).then(|| Self::named_in(name));
        values.iter().find_map(|value| Self::of(value)).or_else(named) == Some(self)
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::Language => "language",
            Self::Currency => "currency",
        }
    }

    /// Returns whether a page announces this language. Every page fits a currency, because few announce theirs.
    pub fn fits(self, page: &Page, value: &str) -> bool {
        self == Self::Currency || language_of(page).is_some_and(|own| primary(&own) == primary(value))
    }
}

/// Returns whether an address or a name has a word for a language or a currency.
pub fn names_preference(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let mut words = address.split(|character: char| !character.is_ascii_alphanumeric());
    NAMES.iter().any(|name| address.contains(name)) || words.any(|word| WORDS.contains(&word))
}

/// Returns whether a link sets a language or a currency, such as `/currency/USD` or `?lang=de`.
pub fn is_switch(url: &Url) -> bool {
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_value =
        Preference::of(last).is_some() || url.query_pairs().any(|(_, value)| Preference::of(&value).is_some());
    has_value && names_preference(&url[url::Position::BeforePath..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switchers_are_known_by_name_and_value() {
        let is_switch = |address: &str| is_switch(&Url::parse("https://shop.example").unwrap().join(address).unwrap());
        for address in ["/currency/USD", "/setCurrency?code=eur", "/de/lang/en_GB/", "/?locale=de&to=/"] {
            assert!(is_switch(address), "{address}");
        }
        for address in
            ["/newsletter?confirm=no", "/currency/", "/usd", "/languages", "/no", "/lang/books", "/langarm/de"]
        {
            assert!(!is_switch(address), "{address}");
        }
    }
}
