//! Normalized values of the headers that select a page: equal values mean equal requests to the origin.

use http::{HeaderMap, HeaderName, header};

use super::policy::quality::{members, weight};
use crate::{config::rules::NormalizedHeader, ports::sort};

/// The lines of a header as one text. None if it is not visible ASCII.
pub fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Option<Vec<_>> = headers.get_all(name).iter().map(|line| line.to_str().ok()).collect();
    Some(lines?.join(","))
}

/// The value of a header with one spelling.
pub fn combined(name: &HeaderName, text: &str) -> String {
    if *name == header::ACCEPT_LANGUAGE {
        let mut languages = members(text);
        // The order of equal weights has no meaning (RFC 9110 §12.4.2).
        sort::sort_by(&mut languages, |one, other| weight(other).cmp(&weight(one)).then_with(|| one.cmp(other)));
        languages.dedup();
        return languages.join(",");
    }
    if text.contains('"') {
        return text.trim().to_owned();
    }
    text.split(',').map(str::trim).filter(|member| !member.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The value of the rule for a header: the preferred language, or the first value that the header contains as a whole word.
/// None: no value fits.
pub fn listed(rule: &NormalizedHeader, text: &str) -> Option<String> {
    let NormalizedHeader { name, values } = rule;
    if *name == header::ACCEPT_LANGUAGE {
        return preferred(text, values).map(str::to_owned);
    }
    let value = values.iter().find(|value| contains_word(text, value))?;
    // An origin without this type may send another one instead of 406 (RFC 9110 §12.5.1).
    Some(if *name == header::ACCEPT { format!("{value}, */*;q=0.8") } else { value.clone() })
}

/// The scripts of Chinese by region (CLDR, likely subtags).
const SCRIPTS: [(&str, &str); 5] =
    [("zh-cn", "zh-hans"), ("zh-sg", "zh-hans"), ("zh-tw", "zh-hant"), ("zh-hk", "zh-hant"), ("zh-mo", "zh-hant")];

/// The available language that a client prefers: for each language range the lookup of RFC 4647 §3.4, then the first more
/// special language (§3.3.1), as `de-AT` for `de`. Of equal weights, the first one wins, as in most applications.
fn preferred<'a>(text: &str, available: &'a [String]) -> Option<&'a str> {
    let mut languages = members(text);
    sort::sort_by(&mut languages, |one, other| weight(other).cmp(&weight(one)));
    languages.iter().filter(|language| weight(language) > 0).find_map(|language| {
        let range = language.split(';').next().unwrap_or_default();
        let equal = |tag: &str| available.iter().find(|language| language.eq_ignore_ascii_case(tag));
        let script = || SCRIPTS.iter().find(|(region, _)| *region == range).and_then(|(_, script)| equal(script));
        let mut found = equal(range).or_else(script);
        let mut tag = range;
        while let (None, Some((shorter, _))) = (found, tag.rsplit_once('-')) {
            found = equal(shorter);
            tag = shorter;
        }
        let is_special = |language: &&String| {
            let (start, rest) = language.as_bytes().split_at_checked(range.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(range.as_bytes()) && rest.first() == Some(&b'-')
        };
        found.or_else(|| available.iter().find(is_special)).map(String::as_str)
    })
}

/// Returns whether a text contains a word, in any case, with no letter or digit right before or after it.
fn contains_word(text: &str, word: &str) -> bool {
    let text = text.as_bytes();
    let is_inside = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    text.windows(word.len().max(1)).enumerate().any(|(at, window)| {
        let is_start = at.checked_sub(1).is_none_or(|before| !is_inside(before));
        is_start && !is_inside(at + word.len()) && window.eq_ignore_ascii_case(word.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, values: &[&str]) -> NormalizedHeader {
        NormalizedHeader { name: name.parse().unwrap(), values: values.iter().map(ToString::to_string).collect() }
    }

    // RFC 4647 §3.4; the languages of browsers.
    #[test]
    fn the_shops_language_that_the_client_prefers_is_chosen() {
        let shop = rule("accept-language", &["en", "de", "pt-BR", "zh-Hant"]);
        for (header, chosen) in [
            ("de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", Some("de")),
            ("de-AT", Some("de")),
            ("fr-FR,fr;q=0.9,en-GB;q=0.8", Some("en")),
            ("en;q=0.5, de;q=0.9", Some("de")),
            ("EN-us", Some("en")),
            ("pt", Some("pt-BR")),
            ("pt-PT, en", Some("en")),
            ("zh-Hant-TW", Some("zh-Hant")),
            ("zh-Hans-CN", None),
            ("en-x-private", Some("en")),
            ("de;q=0, *", None),
            ("*", None),
            ("fr", None),
            ("-, ;q=1, de-", Some("de")),
            ("", None),
            ("en, de", Some("en")),
            ("de-DE, en-US", Some("de")),
            ("zh-TW,zh;q=0.9,en;q=0.7", Some("zh-Hant")),
            ("zh-HK", Some("zh-Hant")),
        ] {
            assert_eq!(listed(&shop, header).as_deref(), chosen, "{header}");
        }
        assert_eq!(listed(&rule("accept-language", &[]), "de"), None);
    }

    #[test]
    fn the_first_listed_word_of_a_header_is_chosen() {
        let phone = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile Safari/537.36";
        for (name, values, header, chosen) in [
            ("user-agent", &["iPhone", "mobile"][..], phone, Some("mobile")),
            ("user-agent", &["Mobil", "obile", "Chrom"], phone, None),
            ("user-agent", &["Chrome/142.0"], phone, Some("Chrome/142.0")),
            ("user-agent", &[], phone, None),
            ("cf-ipcountry", &["US", "AT"], "AUS", None),
            ("cf-ipcountry", &["US", "AT"], "at", Some("AT")),
            ("cf-ipcountry", &["US", "AT"], "x, au, us", Some("US")),
            ("accept", &["image/avif", "image/webp"], "image/webp,image/*", Some("image/webp, */*;q=0.8")),
            ("accept", &["image/avif", "image/webp"], "*/*", None),
        ] {
            assert_eq!(listed(&rule(name, values), header).as_deref(), chosen, "{name}: {header}");
        }
    }
}
