//! `Vary: Accept-Language`: the languages of a shop.

use http::header;
use url::Url;

use super::{
    SAME_RISK, Values,
    compare::{ComparedPage, get, is_equal},
};
use crate::shop::{Page, Shop};

/// Languages of shops, with the regions whose pages often differ. The shortest name of a language comes first.
const LANGUAGES: [&str; 51] = [
    "en", "en-US", "en-GB", "en-AU", "de", "de-AT", "de-CH", "fr", "fr-CA", "fr-CH", "es", "es-MX", "it", "nl",
    "nl-BE", "pt", "pt-BR", "pl", "sv", "da", "nb", "no", "fi", "cs", "sk", "sl", "hr", "hu", "ro", "bg", "el", "tr",
    "uk", "ru", "et", "lv", "lt", "ja", "ko", "zh-Hans", "zh-Hant", "ar", "he", "fa", "hi", "th", "vi", "id", "ms",
    "ca", "is",
];

const LANGUAGE_RISK: &str = "a visitor whose languages are not listed gets the page that the shop sends without this \
    header; add a language or a region when the shop gets one.";

/// The languages of the pages. None if the shop did not answer.
pub async fn values(shop: &Shop, pages: &[&Url]) -> Option<Values> {
    let mut found = Vec::new();
    let mut differs = false;
    for url in pages {
        let mut page = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
        let others = all_languages(&page.page);
        if page.is_same(&others).await? {
            continue;
        }
        differs = true;
        // The pages of this address, with the languages that they announce.
        let mut known: Vec<(String, Page)> = Vec::new();
        for language in LANGUAGES {
            let answer = get(shop, url, &header::ACCEPT_LANGUAGE, language).await?;
            let Some(own) = language_of(&answer).filter(|own| primary(own) == primary(language)) else { continue };
            // A region may have prices of its own, and announce only the language.
            let is_known =
                known.iter().any(|(other, same)| *other == own && (page.is_noisy() || is_equal(same, &answer)));
            if !is_known {
                known.push((own, answer));
                if !found.contains(&language) {
                    found.push(language);
                }
            }
        }
    }
    Some(match (differs, found.is_empty()) {
        (false, _) => Values::Listed { values: Vec::new(), risk: SAME_RISK },
        (true, true) => Values::Unknown,
        (true, false) => Values::Listed { values: found, risk: LANGUAGE_RISK },
    })
}

/// All languages but that of a page: the shop chooses one if it has a second one.
fn all_languages(page: &Page) -> String {
    let own = language_of(page).map_or_else(|| "en".to_owned(), |own| primary(&own));
    LANGUAGES.into_iter().filter(|language| primary(language) != own).collect::<Vec<_>>().join(",")
}

/// The language that a page announces: `Content-Language`, else the `lang` of its root element, in lower case.
fn language_of(page: &Page) -> Option<String> {
    let header = page.headers.get(header::CONTENT_LANGUAGE).and_then(|value| value.to_str().ok());
    let text = page.text();
    let root = || text.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).map(|(root, _)| root);
    let lang = || root()?.split_once("lang=").map(|(_, value)| value.trim_start_matches(['"', '\'']));
    let language = header.or_else(lang)?;
    let end = language.find(|next: char| !next.is_ascii_alphanumeric() && next != '-').unwrap_or(language.len());
    language.get(..end).filter(|language| !language.is_empty()).map(str::to_ascii_lowercase)
}

/// The language without script and region, in lower case.
fn primary(language: &str) -> String {
    language.split('-').next().unwrap_or_default().to_ascii_lowercase()
}
