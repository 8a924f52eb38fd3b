//! `Vary: Accept-Language` and `Vary: User-Agent`: the few values that select a page of the shop. Without a rule, each
//! spelling of a browser selects a page of its own, and edgefront keeps at most 16 of them.

use edgefront::{config::PageConfig, page_cache::Reason};
use http::{HeaderName, HeaderValue, header};
use url::Url;

use super::{
    advice::Rule,
    difference,
    examine::{A_SECOND, Examined},
    pieces::Pieces,
    shop::{Page, Shop, is_trouble},
    tokens::CsrfTokens,
};

/// Languages of shops, with the regions whose pages often differ. The shortest name of a language comes first.
const LANGUAGES: [&str; 51] = [
    "en", "en-US", "en-GB", "en-AU", "de", "de-AT", "de-CH", "fr", "fr-CA", "fr-CH", "es", "es-MX", "it", "nl",
    "nl-BE", "pt", "pt-BR", "pl", "sv", "da", "nb", "no", "fi", "cs", "sk", "sl", "hr", "hu", "ro", "bg", "el", "tr",
    "uk", "ru", "et", "lv", "lt", "ja", "ko", "zh-Hans", "zh-Hant", "ar", "he", "fa", "hi", "th", "vi", "id", "ms",
    "ca", "is",
];

const COMPUTER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/142.0.0.0 Safari/537.36";
const CRAWLER: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
/// The word by which the User-Agent of phones differs.
const PHONE: &str = "Mobile";
const PHONES: [&str; 2] = [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 \
        Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
];

/// Most pages that are compared for one header.
const MAX_PAGES: usize = 3;

const VARIABLE: &str = "HEADERS_NORMALIZED";
const LANGUAGE_RISK: &str = "a visitor whose languages are not listed gets the page that the shop sends without this \
    header; add a language or a region when the shop gets one.";
const VARIED_RISK: &str = "each page is stored once for each value.";
const PHONE_RISK: &str = "a client with the word Mobile in its User-Agent gets the page for phones, and all others get \
    the page for computers.";
const SAME_RISK: &str = "all clients get the same page, also those that were not compared.";

/// The finding on one request header.
pub struct Finding {
    pub note: String,
    pub rules: Vec<Rule>,
}

/// Looks for the values of the headers that select pages which edgefront stores. A header that a rule names already is left
/// out. A shop that says nothing about sharing, or forbids it, has no reason to name a header in `Vary`, so its pages are compared
/// in any case.
pub async fn find(shop: &Shop, examined: &[Examined], config: &PageConfig) -> Vec<Finding> {
    let is_personal = |page: &Examined| page.verdict.as_ref().is_err_and(|why| why.reason == Reason::Path);
    let shared: Vec<_> = examined.iter().filter(|page| !is_personal(page) && page.vary.is_some()).collect();
    let mut findings = Vec::new();
    for name in [header::ACCEPT_LANGUAGE, header::USER_AGENT] {
        if config.headers.normalized.iter().any(|rule| rule.name == name) {
            continue;
        }
        let varying: Vec<_> = shared.iter().filter(|page| page.varies_by(name.as_str())).copied().collect();
        let is_named = !varying.is_empty();
        let pages = spread(if is_named { &varying } else { &shared });
        if pages.is_empty() {
            continue;
        }
        eprintln!("...  comparing {} pages by {name}", pages.len());
        let values = if name == header::USER_AGENT {
            devices(shop, &pages, is_named).await
        } else {
            languages(shop, &pages).await
        };
        let Some(values) = values else { continue };
        let is_always_same = matches!(&values, Values::Listed { values, .. } if values.is_empty());
        if is_named || !is_always_same {
            findings.push(Finding::of(&name, varying.len(), values));
        }
    }
    findings
}

/// At most [`MAX_PAGES`] pages from the whole list.
fn spread<'a>(pages: &[&'a Examined]) -> Vec<&'a Url> {
    let step = pages.len().div_ceil(MAX_PAGES).max(1);
    pages.iter().step_by(step).map(|page| &page.url).collect()
}

/// The values of a header that select a page.
enum Values {
    /// Without values, the page is always the same.
    Listed { values: Vec<&'static str>, risk: &'static str },
    /// The pages differ, and no rule is known that fits.
    Unknown,
}

impl Finding {
    /// `varying`: number of pages whose `Vary` names the header. 0: pages differ although none does.
    fn of(name: &HeaderName, varying: usize, values: Values) -> Self {
        let (remedy, mut rules) = match values {
            Values::Unknown => (format!("list the values that select a page in {VARIABLE}"), Vec::new()),
            Values::Listed { values, risk } => {
                let rule = Rule { variable: VARIABLE, value: format!("{name}={}", values.join("|")), risk };
                let pages = if values.is_empty() { "page for all clients" } else { "page for each value" };
                (format!("{VARIABLE} {} leaves one {pages}. Risk: {risk}", rule.value), vec![rule])
            }
        };
        let remedy = remedy.trim_end_matches('.');
        if varying == 0 && rules.is_empty() {
            let note =
                format!("pages differ by {name}, but no Vary names it: {remedy}, and the header in HEADERS_VARIED");
            return Self { note, rules };
        }
        if varying == 0 {
            rules.push(Rule { variable: "HEADERS_VARIED", value: name.to_string(), risk: VARIED_RISK });
            let note = format!(
                "pages differ by {name}, but no Vary names it, so visitors would get each other's variant: HEADERS_VARIED \
                 {name} keeps them apart, and {remedy}"
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

/// The classes of devices for which the shop sends pages. None if it did not answer. `is_named`: in `Vary`. Otherwise, only a
/// difference between a computer and a phone leads to further requests.
async fn devices(shop: &Shop, pages: &[&Url], is_named: bool) -> Option<Values> {
    let (mut phones_differ, mut is_known) = (false, true);
    for url in pages {
        let mut page = ComparedPage::new(shop, url, header::USER_AGENT, COMPUTER).await?;
        if !is_named && page.is_same(PHONES[0]).await? {
            continue;
        }
        // The first one is what edgefront sends for all other clients.
        let is_same = page.is_same("edgefront").await? && page.is_same(CRAWLER).await?;
        let mut phone = ComparedPage::new(shop, url, header::USER_AGENT, PHONE).await?;
        let are_phones = phone.is_same(PHONES[0]).await? && phone.is_same(PHONES[1]).await?;
        phones_differ |= !page.is_same(PHONE).await?;
        is_known &= is_same && are_phones;
    }
    Some(match (is_known, phones_differ) {
        (false, _) => Values::Unknown,
        (true, true) => Values::Listed { values: vec![PHONE], risk: PHONE_RISK },
        (true, false) => Values::Listed { values: Vec::new(), risk: SAME_RISK },
    })
}

/// The languages of the pages. None if the shop did not answer.
async fn languages(shop: &Shop, pages: &[&Url]) -> Option<Values> {
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

/// A page for one value of a header.
struct ComparedPage<'a> {
    shop: &'a Shop,
    url: &'a Url,
    name: HeaderName,
    value: &'a str,
    page: Page,
    /// Knows which pieces change for every request.
    pieces: Pieces,
    /// `pieces` knows those that change in a second, too.
    knows_seconds: bool,
}

impl<'a> ComparedPage<'a> {
    async fn new(shop: &'a Shop, url: &'a Url, name: HeaderName, value: &'a str) -> Option<Self> {
        let page = get(shop, url, &name, value).await?;
        let again = get(shop, url, &name, value).await?;
        let pieces = pieces(&page).compared_with(&again.text());
        Some(Self { shop, url, name, value, page, pieces, knows_seconds: false })
    }

    /// Returns whether a client with another value gets the same page.
    async fn is_same(&mut self, value: &str) -> Option<bool> {
        let other = get(self.shop, self.url, &self.name, value).await?;
        if self.differs_from(&other) && !self.knows_seconds {
            self.knows_seconds = true;
            tokio::time::sleep(A_SECOND).await;
            let later = get(self.shop, self.url, &self.name, self.value).await?;
            self.pieces.mark_changes(&later.text());
        }
        Some(!self.differs_from(&other))
    }

    /// Returns whether the page changes at each request.
    fn is_noisy(&self) -> bool {
        (0..self.pieces.texts().len()).any(|at| self.pieces.is_changing(at..at + 1))
    }

    fn differs_from(&self, other: &Page) -> bool {
        // The second one says which pieces change for every request.
        let differences = difference::between(&pieces(other), &self.pieces, &[]);
        self.page.status != other.status || differences.iter().any(|found| !found.is_changing)
    }
}

fn pieces(page: &Page) -> Pieces {
    Pieces::of(&page.text(), CsrfTokens::Covered)
}

/// Returns whether two pages have the same content.
fn is_equal(one: &Page, other: &Page) -> bool {
    one.status == other.status && pieces(one).changes_to(&pieces(other)).is_empty()
}

/// The page for a value of a header; without the header if the value is empty.
async fn get(shop: &Shop, url: &Url, name: &HeaderName, value: &str) -> Option<Page> {
    let value = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty());
    let page = shop.get_with(url, value.map(|value| (name.clone(), value))).await.ok()?;
    (!is_trouble(page.status)).then_some(page)
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
