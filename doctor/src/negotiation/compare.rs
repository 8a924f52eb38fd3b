//! The pages that the shop sends for two values of a request header.

use http::{HeaderName, HeaderValue, header};
use url::Url;

use crate::{
    chance::MORE_RENDERS,
    difference,
    examine::A_SECOND,
    pieces::Pieces,
    shop::{Page, Shop, is_trouble},
    tokens::CsrfTokens,
};

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
}

impl<'a> ComparedPage<'a> {
    /// Requests the page. None if the shop does not answer.
    pub async fn new(shop: &'a Shop, url: &'a Url, name: HeaderName, value: &str) -> Option<Self> {
        let page = get(shop, url, &name, value).await?;
        let again = get(shop, url, &name, value).await?;
        let pieces = pieces(&page).compared_with(&again.text());
        Some(Self { shop, url, name, value: value.to_owned(), page, pieces, knows_seconds: false })
    }

    /// Returns whether a client with another value gets the same page. A page can have [several versions by chance](crate::chance).
    pub async fn is_same(&mut self, value: &str) -> Option<bool> {
        for _ in 0..MORE_RENDERS {
            let other = get(self.shop, self.url, &self.name, value).await?;
            if self.differs_from(&other) {
                self.learn_seconds().await?;
            }
            if !self.differs_from(&other) {
                return Some(true);
            }
        }
        Some(false)
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
        // The second one says which pieces change for every request.
        let differences = difference::between(&pieces(other), &self.pieces, &[]);
        !leads_to_same(&self.page, other) || differences.iter().any(|found| !found.is_changing)
    }
}

/// Returns whether both pages have the same status, and the same target if they are redirects.
fn leads_to_same(one: &Page, other: &Page) -> bool {
    let target = |page: &Page| page.headers.get(header::LOCATION).cloned();
    one.status == other.status && target(one) == target(other)
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
    let value = HeaderValue::from_str(value).ok().filter(|value| !value.is_empty());
    let page = shop.get_with(url, value.map(|value| (name.clone(), value))).await.ok()?;
    (!is_trouble(page.status)).then_some(page)
}

/// The page for a visitor with a cookie.
pub async fn get_with_cookie(shop: &Shop, url: &Url, cookie: &HeaderValue) -> Option<Page> {
    let page = shop.get(url, Some(cookie)).await.ok()?;
    (!is_trouble(page.status)).then_some(page)
}
