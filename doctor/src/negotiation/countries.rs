//! The visitor's country. A shop reads it from a header that a proxy adds, such as `CF-IPCountry`, or derives it from the address.
//! Shared renders carry neither, so without a rule all visitors would get the page of an unknown country.
//!
//! One request names a country in all of these ways at once. Only if the page then differs, further requests find the way.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use super::{
    Finding, HEADERS_VARIED, VARIABLE, VARIED_RISK,
    compare::{ComparedPage, get_with},
};
use crate::{
    advice::Rule,
    difference::Difference,
    shop::{Page, Shop},
};

/// Headers with the code of a country, from Cloudflare, other proxies and shops.
const HEADERS: [&str; 12] = [
    "cf-ipcountry",
    "x-country",
    "x-country-code",
    "x-geo-country",
    "x-geoip-country",
    "x-geoip-country-code",
    "x-client-country",
    "x-user-country",
    "x-visitor-country",
    "cloudfront-viewer-country",
    "x-vercel-ip-country",
    "fastly-geoip-countrycode",
];
/// Headers with the visitor's address that edgefront sends with personal requests, and the platform's own.
const ADDRESSES: [&str; 4] = ["x-forwarded-for", "x-real-ip", "cf-connecting-ip", "true-client-ip"];

/// Countries with shops, currencies and taxes of their own, with an address in each.
const PROBES: [(&str, &str); 14] = [
    ("CH", "130.59.31.80"),
    ("US", "8.8.8.8"),
    ("GB", "212.58.244.20"),
    ("DE", "194.25.0.60"),
    ("FR", "80.10.246.2"),
    ("AT", "195.3.96.67"),
    ("CA", "128.100.1.1"),
    ("AU", "139.130.4.5"),
    ("JP", "133.11.0.1"),
    ("PL", "194.204.152.34"),
    ("SE", "130.237.28.40"),
    ("NL", "192.87.106.106"),
    ("ES", "80.58.61.250"),
    ("BR", "200.160.2.3"),
];
/// The probes at all pages after the first one.
const FEW: usize = 2;

/// Countries to which shops deliver.
const COUNTRIES: [&str; 46] = [
    "AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GR", "HR", "HU", "IE", "IS", "IT",
    "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "RS", "SE", "SI", "SK", "TR", "UA", "US", "CA", "MX", "BR",
    "AU", "NZ", "JP", "KR", "CN", "IN", "SG", "ZA",
];
/// Most countries in a rule: edgefront keeps 16 variants of a page, and one is for all other countries.
const MAX_COUNTRIES: usize = 15;

const COUNTRY_RISK: &str = "visitors from a country that is not listed get the page that the shop sends without this header; add a country \
    when the shop gets one.";

/// The ways by which a shop learns the visitor's country.
#[derive(Default)]
pub struct Countries {
    /// Each header with the countries that have pages of their own. None: too many.
    headers: Vec<(&'static str, Option<Vec<&'static str>>)>,
    /// The first page that the visitor's address changes.
    pub by_address: Option<Url>,
}

/// The headers with an address.
fn of_address(address: &str) -> HeaderMap {
    headers(&ADDRESSES, address)
}

fn headers(names: &[&'static str], value: &str) -> HeaderMap {
    let value = HeaderValue::from_str(value).ok();
    names.iter().filter_map(|name| Some((HeaderName::from_static(name), value.clone()?))).collect()
}

/// The ways by which the shop learns the country. None if the shop does not answer. `pages`: the page of a product comes first.
/// `is_varied`: a rule names the header already.
pub async fn find(shop: &Shop, pages: &[&Url], is_varied: impl Fn(&str) -> bool) -> Option<Countries> {
    let mut found = Countries::default();
    let mut names: Vec<_> = HEADERS.into_iter().filter(|name| !is_varied(name)).collect();
    for (index, url) in pages.iter().enumerate() {
        let mut page = Place::new(shop, url).await?;
        let probes = if index == 0 { PROBES.len() } else { FEW };
        for (country, address) in PROBES.into_iter().take(probes) {
            let mut all = headers(&names, country);
            all.extend(of_address(address));
            if !page.differs(&all).await? {
                continue;
            }
            for name in names.clone() {
                if page.differs(&headers(&[name], country)).await? {
                    found.headers.push((name, page.countries(name).await?));
                    names.retain(|known| *known != name);
                }
            }
            if found.by_address.is_none() && page.differs(&of_address(address)).await? {
                found.by_address = Some((*url).clone());
            }
        }
    }
    Some(found)
}

/// The differences between the pages of visitors with and without a known address. None if the shop does not answer.
pub async fn differences_by_address(shop: &Shop, url: &Url) -> Option<Vec<Difference>> {
    Place::new(shop, url).await?.differences_by_address().await
}

/// A page as the shop sends it without a known place of the visitor.
struct Place<'a> {
    shop: &'a Shop,
    url: &'a Url,
    page: ComparedPage<'a>,
}

impl<'a> Place<'a> {
    async fn new(shop: &'a Shop, url: &'a Url) -> Option<Self> {
        Some(Self { shop, url, page: ComparedPage::new(shop, url, header::ACCEPT_LANGUAGE, "").await? })
    }

    async fn get(&self, headers: &HeaderMap) -> Option<Page> {
        get_with(self.shop, self.url, headers).await
    }

    /// Returns whether the headers change the page.
    async fn differs(&mut self, headers: &HeaderMap) -> Option<bool> {
        Some(!self.page.is_same_with(headers).await?)
    }

    async fn differences_by_address(&mut self) -> Option<Vec<Difference>> {
        for (_, address) in PROBES {
            let headers = of_address(address);
            if self.differs(&headers).await? {
                return Some(self.page.differences(&self.get(&headers).await?));
            }
        }
        Some(Vec::new())
    }

    /// The countries whose page differs from the page without the header. `Some(None)`: too many for a rule. None: the shop does not
    /// answer. Random content costs many requests for each country, so only the [`PROBES`] are compared.
    async fn countries(&mut self, name: &'static str) -> Option<Option<Vec<&'static str>>> {
        let mut found = Vec::new();
        let is_random = self.page.is_random().await?;
        let probes = PROBES.into_iter().map(|(country, _)| country);
        let countries: Vec<_> = if is_random { probes.collect() } else { COUNTRIES.into() };
        for country in countries {
            let headers = headers(&[name], country);
            let differs =
                if is_random { self.differs(&headers).await? } else { !self.page.is_like(&self.get(&headers).await?) };
            found.extend(differs.then_some(country));
        }
        let is_few = (1..=MAX_COUNTRIES).contains(&found.len());
        Some(is_few.then_some(found))
    }
}

impl Countries {
    /// The notes and the rules.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<_> =
            self.headers.iter().map(|(name, countries)| of_header(name, countries.as_deref())).collect();
        findings.extend(self.by_address.as_ref().map(|url| Finding {
            note: format!(
                "{url} differs by the visitor's address, probably by its country. Shared renders carry no address, so no rule fits, and \
                 the doctor proposes none for such pages. Let the shop read CF-IPCountry instead, and run the doctor again"
            ),
            rules: Vec::new(),
        }));
        findings
    }
}

fn of_header(name: &str, countries: Option<&[&str]>) -> Finding {
    let mut rules = vec![Rule { variable: HEADERS_VARIED, value: name.to_owned(), risk: VARIED_RISK }];
    let each = match countries {
        Some(countries) => {
            let value = format!("{name}={}", countries.join("|"));
            let each =
                format!("{VARIABLE} {value} leaves one page for each of these countries, and one for all others");
            rules.push(Rule { variable: VARIABLE, value, risk: COUNTRY_RISK });
            each
        }
        None => format!(
            "more than {MAX_COUNTRIES} countries have pages of their own, and edgefront keeps 16 variants of a page: if fewer differ in \
             prices or texts, list them in {VARIABLE}"
        ),
    };
    let source = if name == "cf-ipcountry" {
        ""
    } else {
        ". Cloudflare adds CF-IPCountry only: let it add this header, too, or let the shop read CF-IPCountry. Otherwise any client can \
         send another country"
    };
    let note =
        format!("pages differ by the country in {name}: {HEADERS_VARIED} {name} keeps them apart, and {each}{source}");
    Finding { note, rules }
}
