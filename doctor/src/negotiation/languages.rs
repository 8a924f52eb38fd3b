//! `Vary: Accept-Language`: the languages of a shop, and the cookie that keeps a visitor's own.

use edgefront::config::rules::VariedCookie;
use http::{HeaderValue, header};
use url::Url;

use super::{
    SAME_RISK, Values,
    compare::{ComparedPage, get, get_with_cookie, is_equal},
    varied_rule::VariedRule,
};
use crate::{
    render::set_cookie_pairs,
    shop::{Page, Shop, redirect},
    tokens::{attribute, start_tags},
};

/// Languages of shops, with the regions whose pages often differ. The shortest name of a language comes first.
const LANGUAGES: [&str; 51] = [
    "en", "en-US", "en-GB", "en-AU", "de", "de-AT", "de-CH", "fr", "fr-CA", "fr-CH", "es", "es-MX", "it", "nl",
    "nl-BE", "pt", "pt-BR", "pl", "sv", "da", "nb", "no", "fi", "cs", "sk", "sl", "hr", "hu", "ro", "bg", "el", "tr",
    "uk", "ru", "et", "lv", "lt", "ja", "ko", "zh-Hans", "zh-Hant", "ar", "he", "fa", "hi", "th", "vi", "id", "ms",
    "ca", "is",
];

/// Maximum number of languages: edgefront keeps 16 variants of a page. With more languages, the page only echoes the header.
pub const MAX_LANGUAGES: usize = 16;

const LANGUAGE_RISK: &str = "a visitor whose languages are not listed gets the page that the shop sends without this \
    header; add a language or a region when the shop gets one.";

/// The languages of a shop.
pub struct Languages {
    pub values: Values,
    /// The rule for the cookie that pages set to their language, and that selects the language.
    pub cookie: Option<VariedRule>,
}

/// A page in one language.
struct Translation {
    /// The value of `Accept-Language`.
    asked: &'static str,
    /// The language that the page announces.
    announced: Option<String>,
    page: Page,
}

/// The languages of the pages. None if the shop did not answer.
pub async fn find(shop: &Shop, pages: &[&Url]) -> Option<Languages> {
    let (mut found, mut cookie) = (Vec::new(), None);
    let (mut differs, mut is_known) = (false, true);
    for url in pages {
        let mut default = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await?;
        let own = language_of(&default.page).map_or_else(|| "en".to_owned(), |own| primary(&own));
        // The shop chooses one of the others if it has a second language. The page may announce a wrong one.
        let mut accepted = vec![all_except(&own), own.clone()];
        // A region may have prices of its own.
        let is_region = |language: &&str| language.strip_prefix(own.as_str()).is_some_and(|end| end.starts_with('-'));
        accepted.extend(LANGUAGES.into_iter().filter(is_region).map(str::to_owned));
        // A shop may read the preferred language only.
        accepted.extend(alternates(&default.page).into_iter().filter(|language| *language != own));
        if default.is_same_for_all(&accepted).await? {
            continue;
        }
        differs = true;
        let mut translations = Vec::new();
        for asked in LANGUAGES {
            let page = get(shop, url, &header::ACCEPT_LANGUAGE, asked).await?;
            translations.push(Translation { asked, announced: language_of(&page), page });
        }
        match of_page((shop, url), &default, &translations).await? {
            Some(languages) => {
                for language in languages {
                    if !found.contains(&language) {
                        found.push(language);
                    }
                }
            }
            None => is_known = false,
        }
        if cookie.is_none() {
            cookie = language_cookie((shop, url), &default, &translations).await;
        }
    }
    let values = match (differs, is_known && (1..=MAX_LANGUAGES).contains(&found.len())) {
        (false, _) => Values::Listed { values: Vec::new(), risk: SAME_RISK },
        (true, false) => Values::Unknown,
        (true, true) => Values::Listed { values: found, risk: LANGUAGE_RISK },
    };
    Some(Languages { values, cookie })
}

/// The languages for which the shop has a page of its own. None if the pages do not show their languages. A template may
/// announce one language in all pages, so a page that announces another language than the requested one, and equals no page that
/// announces it, is in the requested language.
async fn of_page(
    (shop, url): (&Shop, &Url),
    default: &ComparedPage<'_>,
    translations: &[Translation],
) -> Option<Option<Vec<&'static str>>> {
    let mut found: Vec<&Translation> = Vec::new();
    for translation in translations.iter().filter(|translation| translation.is_as_asked()) {
        // A region may have prices of its own, and announce only the language.
        let is_known = found.iter().any(|known| {
            known.announced == translation.announced && (default.is_noisy() || is_equal(&known.page, &translation.page))
        });
        if !is_known {
            found.push(translation);
        }
    }
    let own = language_of(&default.page);
    let mut same = found.iter().filter(|known| own.is_some() && known.announced == own).peekable();
    // Otherwise the default page announces a wrong language, and its own one is not known.
    if same.peek().is_some() && !same.any(|known| default.is_like(&known.page)) {
        return Some(None);
    }
    let mut compared = Vec::new();
    for translation in translations.iter().filter(|translation| !translation.is_as_asked()) {
        let Some(announced) = &translation.announced else { continue };
        if default.is_like(&translation.page) {
            continue;
        }
        let named = found.iter().find(|known| known.announced.as_ref() == Some(announced));
        if let Some(named) = named.filter(|named| !compared.iter().any(|(asked, _)| *asked == named.asked)) {
            compared.push((named.asked, ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, named.asked).await?));
        }
        if compared.iter().any(|(_, page)| page.is_like(&translation.page)) {
            continue;
        }
        found.push(translation);
        let page = ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, translation.asked).await?;
        compared.push((translation.asked, page));
    }
    Some((!found.is_empty()).then(|| found.iter().map(|known| known.asked).collect()))
}

/// A cookie that the pages set to their language, if it also selects the language.
async fn language_cookie(
    (shop, url): (&Shop, &Url),
    default: &ComparedPage<'_>,
    translations: &[Translation],
) -> Option<VariedRule> {
    let pairs = |page: &Page| set_cookie_pairs(&page.headers);
    let (name, own) = pairs(&default.page).into_iter().find(|(_, value)| is_language(value))?;
    let mut values = vec![own];
    for translation in translations {
        let value = pairs(&translation.page).into_iter().find(|(other, _)| *other == name)?.1;
        if primary(&value) == primary(translation.asked) && !values.contains(&value) {
            values.push(value);
        }
    }
    for value in values.iter().skip(1) {
        let cookie = HeaderValue::from_str(&format!("{name}={value}")).ok()?;
        if default.is_like(&get_with_cookie(shop, url, &cookie).await?) {
            return None;
        }
    }
    let is_few = (2..=MAX_LANGUAGES).contains(&values.len());
    is_few.then_some(VariedRule { cookie: VariedCookie { name, values }, is_signed: false })
}

impl Translation {
    /// Returns whether the page announces the language that was asked for.
    fn is_as_asked(&self) -> bool {
        self.announced.as_ref().is_some_and(|own| primary(own) == primary(self.asked))
    }
}

/// All languages but one.
fn all_except(own: &str) -> String {
    LANGUAGES.into_iter().filter(|language| primary(language) != own).collect::<Vec<_>>().join(",")
}

/// The language that a page announces, in lower case: `Content-Language`, the `lang` of its root element, or a cookie that
/// it sets to a language. A redirect announces the language at the start of its target's path.
pub fn language_of(page: &Page) -> Option<String> {
    if let Some(language) = language_of_redirect(page) {
        return Some(language);
    }
    let header = page.headers.get(header::CONTENT_LANGUAGE).and_then(|value| value.to_str().ok());
    let text = page.text();
    let root = || text.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).map(|(root, _)| root);
    let lang = || root()?.split_once("lang=").map(|(_, value)| value.trim_start_matches(['"', '\'']));
    let language = header.or_else(lang).map(str::to_owned);
    let cookie =
        || set_cookie_pairs(&page.headers).into_iter().map(|(_, value)| value).find(|value| is_language(value));
    let language = language.filter(|language| !language.is_empty()).or_else(cookie)?;
    let end = language.find(|next: char| !next.is_ascii_alphanumeric() && next != '-').unwrap_or(language.len());
    language.get(..end).filter(|language| !language.is_empty()).map(str::to_ascii_lowercase)
}

/// The language of a redirect's target, such as `/de/shoes`. Next.js and others redirect the home page only.
fn language_of_redirect(page: &Page) -> Option<String> {
    let target = page.headers.get(header::LOCATION).filter(|_| page.status.is_redirection())?.to_str().ok()?;
    let target = Url::parse("http://shop.invalid").ok()?.join(target).ok()?;
    language_in_path(&target)
}

/// The language at the start of the path, such as `/de/shoes`.
pub fn language_in_path(url: &Url) -> Option<String> {
    url.path_segments()?.next().map(primary).filter(|language| is_language(language))
}

/// The home pages of the other languages, to which the shop redirects visitors by `Accept-Language`. `home` has its language in the
/// path. Pages need not link them: in Django, a form selects the language.
pub async fn other_homes(shop: &Shop, home: &Url, may_request: impl Fn(&Url) -> bool) -> Vec<Url> {
    let root = home.join("/").ok().filter(&may_request);
    let (Some(own), Some(root)) = (language_in_path(home), root) else { return Vec::new() };
    let (mut known, mut homes) = (vec![own], Vec::new());
    while known.len() < MAX_LANGUAGES {
        let asked: Vec<_> = LANGUAGES.into_iter().filter(|language| !known.contains(&primary(language))).collect();
        let Some(page) = get(shop, &root, &header::ACCEPT_LANGUAGE, &asked.join(",")).await else { break };
        let target = redirect(page.status, &page.headers, &root).filter(|target| target.origin() == root.origin());
        let Some(target) = target else { break };
        let Some(found) = language_in_path(&target) else { break };
        if known.contains(&found) {
            break;
        }
        known.push(found);
        homes.push(target);
    }
    homes.retain(may_request);
    homes
}

/// The languages of the page's translations (`hreflang`), without their regions.
fn alternates(page: &Page) -> Vec<String> {
    let html = page.text();
    let languages = start_tags(&html).filter_map(|tag| attribute(&tag, "hreflang"));
    let mut languages: Vec<_> = languages.map(|language| primary(&language)).collect();
    languages.retain(|language| is_language(language));
    languages.sort();
    languages.dedup();
    languages.truncate(MAX_LANGUAGES);
    languages
}

/// Returns whether a value is one of [`LANGUAGES`], or one with a region or a script, such as `de_DE` or `zh-hans`.
pub fn is_language(value: &str) -> bool {
    let is_region =
        |region: &str| [2, 4].contains(&region.len()) && region.bytes().all(|byte| byte.is_ascii_alphabetic());
    let language = value.split_once(['-', '_']).filter(|(_, region)| is_region(region)).map_or(value, |(own, _)| own);
    language == "zh" || LANGUAGES.contains(&language)
}

/// The language without script and region, in lower case.
pub fn primary(language: &str) -> String {
    language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}
