//! The pages that the shop sends for two values of a request header.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use crate::{
    chance::MORE_RENDERS,
    difference::{self, Difference},
    examine::A_SECOND,
    pieces::Pieces,
    shop::{Page, Shop, is_trouble},
    tokens::CsrfTokens,
};

/// Renders of a page with random content for each of two clients. With fewer, a random product is often in all pages of one client and
/// in none of the other.
const RANDOM_RENDERS: usize = 5;

/// A page for one value of a header.
pub struct ComparedPage<'a> {
    shop: &'a Shop,
    url: &'a Url,
    name: HeaderName,
    value: String,
    pub page: Page,
    /// Knows which pieces change for every request.
    pieces: Pieces,
    /// `pieces` knows those that change in a second, too.
    knows_seconds: bool,
    /// If the content is random: the tags and texts of each page that the own value gets. None: not known yet.
    random: Option<Vec<HashSet<String>>>,
}

impl<'a> ComparedPage<'a> {
    /// Requests the page. None if the shop does not answer.
    pub async fn new(shop: &'a Shop, url: &'a Url, name: HeaderName, value: &str) -> Option<Self> {
        let page = get(shop, url, &name, value).await?;
        let again = get(shop, url, &name, value).await?;
        let pieces = pieces(&page).compared_with(&again.text());
        Some(Self { shop, url, name, value: value.to_owned(), page, pieces, knows_seconds: false, random: None })
    }

    /// Returns whether a client with another value gets the same page. A page can have [several versions by chance](crate::chance).
    pub async fn is_same(&mut self, value: &str) -> Option<bool> {
        self.is_same_with(&headers(&self.name, value)).await
    }

    /// Returns whether a client with these headers gets the same page, as [`ComparedPage::is_same`].
    pub async fn is_same_with(&mut self, headers: &HeaderMap) -> Option<bool> {
        let mut others = Vec::new();
        for _ in 0..MORE_RENDERS {
            let other = get_with(self.shop, self.url, headers).await?;
            if self.differs_from(&other) {
                self.learn_seconds().await?;
            }
            if !self.differs_from(&other) {
                return Some(true);
            }
            others.push(other);
        }
        if !others.iter().all(|other| leads_to_same(&self.page, other)) || !self.is_random().await? {
            return Some(false);
        }
        while others.len() < RANDOM_RENDERS {
            others.push(get_with(self.shop, self.url, headers).await?);
        }
        let others: Vec<_> = others.iter().map(texts).collect();
        let own = self.random.as_deref().unwrap_or_default();
        Some(!has_own_text(own, &others) && !has_own_text(&others, own))
    }

    /// Returns whether the page differs from itself. None if the shop does not answer.
    pub async fn is_random(&mut self) -> Option<bool> {
        if self.random.is_none() {
            let own = headers(&self.name, &self.value);
            let (mut pages, mut is_random) = (vec![texts(&self.page)], false);
            while pages.len() <= if is_random { RANDOM_RENDERS } else { MORE_RENDERS } {
                let again = get_with(self.shop, self.url, &own).await?;
                is_random |= self.differs_from(&again);
                pages.push(texts(&again));
            }
            self.random = Some(if is_random { pages } else { Vec::new() });
        }
        Some(self.random.as_ref().is_some_and(|pages| !pages.is_empty()))
    }

    /// Learns which pieces change in a second. None if the shop does not answer.
    pub async fn learn_seconds(&mut self) -> Option<()> {
        if !self.knows_seconds {
            self.knows_seconds = true;
            tokio::time::sleep(A_SECOND).await;
            let later = get(self.shop, self.url, &self.name, &self.value).await?;
            self.pieces.mark_changes(&later.text());
        }
        Some(())
    }

    /// Returns whether clients with these values get the same page.
    pub async fn is_same_for_all(&mut self, values: &[String]) -> Option<bool> {
        for value in values {
            if !self.is_same(value).await? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns whether the page changes at each request.
    pub fn is_noisy(&self) -> bool {
        (0..self.pieces.texts().len()).any(|at| self.pieces.is_changing(at..at + 1))
    }

    /// Returns whether a page is this one, apart from pieces that change at each request.
    pub fn is_like(&self, other: &Page) -> bool {
        !self.differs_from(other)
    }

    fn differs_from(&self, other: &Page) -> bool {
        !leads_to_same(&self.page, other) || !self.differences(other).is_empty()
    }

    /// The differences of another page from this one, without pieces that change at each request.
    pub fn differences(&self, other: &Page) -> Vec<Difference> {
        if self.page.status != other.status {
            return vec![Difference::of_status(other.status, self.page.status)];
        }
        // The second one says which pieces change for every request.
        let mut differences = difference::between(&pieces(other), &self.pieces, &[]);
        differences.retain(|found| !found.is_changing);
        differences
    }
}

/// Returns whether both pages have the same status, and the same target if they are redirects.
fn leads_to_same(one: &Page, other: &Page) -> bool {
    let target = |page: &Page| page.headers.get(header::LOCATION).cloned();
    one.status == other.status && target(one) == target(other)
}

/// Returns whether all of these pages have a tag or a text that none of the others has.
fn has_own_text(pages: &[HashSet<String>], others: &[HashSet<String>]) -> bool {
    let Some((first, more)) = pages.split_first() else { return false };
    first
        .iter()
        .any(|text| more.iter().all(|page| page.contains(text)) && !others.iter().any(|page| page.contains(text)))
}

fn texts(page: &Page) -> HashSet<String> {
    pieces(page).texts().iter().cloned().collect()
}

fn pieces(page: &Page) -> Pieces {
    Pieces::of(&page.text(), CsrfTokens::Covered)
}

/// Returns whether two pages have the same content.
pub fn is_equal(one: &Page, other: &Page) -> bool {
    leads_to_same(one, other) && pieces(one).changes_to(&pieces(other)).is_empty()
}

/// The page for a value of a header; without the header if the value is empty.
pub async fn get(shop: &Shop, url: &Url, name: &HeaderName, value: &str) -> Option<Page> {
    get_with(shop, url, &headers(name, value)).await
}

fn headers(name: &HeaderName, value: &str) -> HeaderMap {
    let value = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty());
    value.map(|value| (name.clone(), value)).into_iter().collect()
}

/// The page for a client with these headers.
pub async fn get_with(shop: &Shop, url: &Url, headers: &HeaderMap) -> Option<Page> {
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let page = shop.get_with(url, headers).await.ok()?;
    (!is_trouble(page.status)).then_some(page)
}

/// The page for a visitor with a cookie.
pub async fn get_with_cookie(shop: &Shop, url: &Url, cookie: &HeaderValue) -> Option<Page> {
    let page = shop.get(url, Some(cookie)).await.ok()?;
    (!is_trouble(page.status)).then_some(page)
}
