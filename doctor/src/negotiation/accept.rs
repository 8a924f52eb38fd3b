//! `Vary: Accept`: HTML for all browsers, types of images, or formats for programs.

use edgefront::{
    config::{
        Forward, HeaderRules,
        rules::{CookieRules, NormalizedHeader},
    },
    page_cache::{SelectingHeaders, visitor_cookies::VisitorCookies},
};
use http::{HeaderMap, HeaderValue, header};
use url::Url;

use super::{Values, compare::ComparedPage};
use crate::{examine::Examined, shop::Shop};

/// Values of `Accept` for a page: from programs, Chrome, Firefox, Safari, an older browser and Turbo.
const NAVIGATIONS: [&str; 7] = [
    "text/html",
    "*/*",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,\
        application/signed-exchange;v=b3;q=0.7",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/png,image/svg+xml,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
    "text/html, application/xhtml+xml",
];

/// Values of `Accept` for other formats: from streams of Turbo, axios, jQuery and other programs.
const FORMATS: [&str; 5] = [
    "text/vnd.turbo-stream.html, text/html, application/xhtml+xml",
    "application/json, text/plain, */*",
    "application/json, text/javascript, */*; q=0.01",
    "application/json",
    "application/xml",
];

/// Rules that may explain the pages, the simplest first.
const RULES: [(&[&str], &str); 4] = [
    (&["text/html"], HTML_RISK),
    (&["image/webp"], IMAGE_RISK),
    (&["image/avif"], IMAGE_RISK),
    (&["image/avif", "image/webp"], IMAGE_RISK),
];

const HTML_RISK: &str = "a client that accepts HTML, or every type, gets this page, even if it prefers a format that was \
    not compared.";
const IMAGE_RISK: &str = "a client that accepts HTML, or every type, gets a page that differs by these types of images only, \
    even if it prefers a format that was not compared.";

/// The values of `Accept` that select a page. None if the shop did not answer.
pub async fn values(shop: &Shop, pages: &[&Examined]) -> Option<Values> {
    let mut known: Vec<_> = pages.iter().map(|page| KnownPage::new(shop, page)).collect();
    for (values, risk) in RULES {
        let rule = rule(values);
        if !are_explained(&mut known, &rule, &NAVIGATIONS).await? {
            continue;
        }
        for format in FORMATS {
            // A shop that fails for a format says nothing about it.
            if are_explained(&mut known, &rule, &[format]).await != Some(true) {
                return Some(Values::OwnFormat(format));
            }
        }
        return Some(Values::Listed { values: values.to_vec(), risk });
    }
    Some(Values::Unknown)
}

/// The setting with these values in `HEADERS_NORMALIZED`.
fn rule(values: &[&str]) -> HeaderRules {
    let values = values.iter().map(ToString::to_string).collect();
    let normalized = vec![NormalizedHeader { name: header::ACCEPT, values }];
    HeaderRules { normalized, ..Forward::Only(Vec::new()).into() }
}

/// Returns whether each client gets its own page also with the rule. None if the shop did not answer.
async fn are_explained(pages: &mut [KnownPage<'_>], rule: &HeaderRules, clients: &[&str]) -> Option<bool> {
    for page in pages {
        for client in clients {
            if !page.is_explained(rule, client).await? {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// A page with the variants that are known so far.
struct KnownPage<'a> {
    shop: &'a Shop,
    url: &'a Url,
    /// Each differs from the others.
    variants: Vec<ComparedPage<'a>>,
    /// The index of the variant for each value.
    by_value: Vec<(String, usize)>,
}

impl<'a> KnownPage<'a> {
    const fn new(shop: &'a Shop, page: &'a Examined) -> Self {
        Self { shop, url: &page.url, variants: Vec::new(), by_value: Vec::new() }
    }

    /// Returns whether a client gets the same page with the rule as without it. If a page varies by `Accept`, edgefront
    /// passes a request that accepts no HTML to the shop.
    async fn is_explained(&mut self, rule: &HeaderRules, client: &str) -> Option<bool> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(client).ok()?)]);
        let cookies = VisitorCookies::of(&headers, &CookieRules::default(), &[]);
        if cookies.refuses_html {
            return Some(true);
        }
        let sent = SelectingHeaders::of(&headers, rule, &cookies).headers(None);
        let sent = sent.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Some(self.variant(client).await? == self.variant(sent).await?)
    }

    /// The index of the variant that the shop sends for a value. An empty value is that of a shared render.
    async fn variant(&mut self, value: &str) -> Option<usize> {
        if let Some((_, index)) = self.by_value.iter().find(|(known, _)| known == value) {
            return Some(*index);
        }
        let mut index = 0;
        for variant in &mut self.variants {
            if variant.is_same(value).await? {
                break;
            }
            index += 1;
        }
        if index == self.variants.len() {
            self.variants.push(ComparedPage::new(self.shop, self.url, header::ACCEPT, value).await?);
        }
        self.by_value.push((value.to_owned(), index));
        Some(index)
    }
}
