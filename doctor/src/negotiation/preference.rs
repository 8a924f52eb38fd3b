//! The preferences of a visitor that a shop keeps, and the addresses at which visitors set them.

use url::Url;

use super::languages::{is_language, language_of, primary};
use crate::{changes::words_of_name, shop::Page};

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

/// Whole words of addresses that set a place or a tax, together with one of [`VERBS`].
const PLACES_AND_TAXES: [&str; 8] = ["country", "region", "store", "branch", "vat", "tax", "zip", "postcode"];
const VERBS: [&str; 4] = ["set", "select", "change", "switch"];

/// A preference that a shop keeps for a visitor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    Language,
    Currency,
    /// A country, a store, or prices with or without taxes.
    PlaceOrTax,
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
        if address.to_ascii_lowercase().contains("currenc") {
            Self::Currency
        } else if sets_place_or_tax(address) || selects_place(address) {
            Self::PlaceOrTax
        } else {
            Self::Language
        }
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
            Self::PlaceOrTax => "country, store or tax",
        }
    }

    /// Returns whether a page announces this language. Every page fits another preference, because few announce theirs.
    pub fn fits(self, page: &Page, value: &str) -> bool {
        self != Self::Language || language_of(page).is_some_and(|own| primary(&own) == primary(value))
    }
}

/// Returns whether the end of a path sets a place or a tax to a number or a code, such as `/store/select/5`.
fn selects_place(address: &str) -> bool {
    let path = address.split('?').next().unwrap_or_default().trim_end_matches('/');
    let segments: Vec<_> = path.rsplit('/').take(3).collect();
    let is_value = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit())
            || text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let names = |one: &str, other: &str| sets_place_or_tax(&format!("{one}-{other}"));
    matches!(segments.as_slice(), [value, one, other] if !value.is_empty() && is_value(value) && names(other, one))
}

/// Returns whether an address or a name has a word for a language or a currency, or sets a place.
pub fn names_preference(address: &str) -> bool {
    if sets_place_or_tax(address) || selects_place(address) {
        return true;
    }
    let address = address.to_ascii_lowercase();
    let mut words = address.split(|character: char| !character.is_ascii_alphanumeric());
    NAMES.iter().any(|name| address.contains(name)) || words.any(|word| WORDS.contains(&word))
}

/// Returns whether a part of an address sets a place or a tax, such as `/set-country/AT` or `?changeStore=7`.
fn sets_place_or_tax(address: &str) -> bool {
    let is_place = |word: &str| PLACES_AND_TAXES.iter().any(|own| own.eq_ignore_ascii_case(word));
    let is_verb = |word: &str| VERBS.iter().any(|own| own.eq_ignore_ascii_case(word));
    let is_both = |word: &str| {
        let word = word.to_ascii_lowercase();
        VERBS.iter().any(|verb| word.strip_prefix(verb).is_some_and(is_place))
    };
    address.split(['/', '?', '&', '=']).any(|part| {
        let words = part.split(|character: char| !character.is_ascii_alphanumeric());
        let words: Vec<_> = words.flat_map(words_of_name).collect();
        let is_pair = |pair: &[&str]| {
            matches!(pair, [one, other] if is_verb(one) && is_place(other) || is_place(one) && is_verb(other))
        };
        words.iter().any(|word| is_both(word)) || words.windows(2).any(is_pair)
    })
}

/// Returns whether a link sets a language or a currency, such as `/currency/USD` or `?lang=de`, or a place.
pub fn is_switch(url: &Url) -> bool {
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let has_value = is_number
        || Preference::of(last).is_some()
        || url.query_pairs().any(|(_, value)| Preference::of(&value).is_some());
    let address = &url[url::Position::BeforePath..];
    sets_place_or_tax(address) || selects_place(address) || has_value && names_preference(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switchers_are_known_by_name_and_value() {
        let is_switch = |address: &str| is_switch(&Url::parse("https://shop.example").unwrap().join(address).unwrap());
        for address in [
            "/store/select/5",
            "/changecurrency/3",
            "/de/change/country/at/",
            "/set-country/AT",
            "/changeStore?id=7",
            "/?switch_vat=1",
            "/selectbranch/7",
            "/a/country-select",
        ] {
            assert!(is_switch(address), "{address}");
        }
        for address in [
            "/store/select/shoes",
            "/currency-converter/3-mugs",
            "/country/AT",
            "/store/set-of-mugs",
            "/store/change",
            "/taxis/select",
            "/mug-set?store=1",
        ] {
            assert!(!is_switch(address), "{address}");
        }
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
