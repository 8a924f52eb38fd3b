//! The variants of pages: those of languages, devices, formats, groups and countries.

use edgefront::config::rules::UrlRules;
use url::Url;
use xtask::failure::Failure;

use super::{
    crawl::Sample,
    diagnosis::Diagnosis,
    examine::Examiner,
    groups::{self, GroupCookie},
    kinds::{self, Shape},
    negotiation, render, visitor,
};

/// The first page of the kind with the most pages, which are mostly products.
pub fn page_of_largest_kind<'a>(sample: &'a Sample, rules: &UrlRules) -> Option<&'a Url> {
    let shapes: Vec<_> = sample.addresses.iter().map(|url| Shape::of(url, rules)).collect();
    let patterns = kinds::patterns(&shapes);
    let kind = |page: &Url| sample.addresses.iter().zip(&patterns).find(|(url, _)| *url == page).map(|(_, kind)| kind);
    let size =
        |page: &&Url| kind(page).map_or(0, |own| sample.pages.iter().filter(|other| kind(other) == Some(own)).count());
    // `max_by_key` returns the last maximum: hence `rev`.
    sample.pages.iter().rev().max_by_key(size)
}

impl Diagnosis {
    /// Finds the languages, devices, formats and groups that have pages of their own.
    pub(super) async fn find_variants(&mut self, sample: &Sample) {
        let config = &self.app.config.page;
        let found = negotiation::find(&self.shop, &self.examined, config, &sample.preference_cookies).await;
        self.add(found);
        let groups = groups::find(&self.examined, &self.app.config.page.cookies);
        self.visitors.group_cookies = groups.iter().map(GroupCookie::cookie).collect();
        self.add(groups.iter().map(GroupCookie::finding).collect());
    }

    /// Examines pages again in the variant that a newly varied cookie selects, if they differ for a visitor with this cookie.
    pub(super) async fn examine_variants_again(&mut self) -> Result<(), Failure> {
        let app = render::edgefront(&self.settings, &self.shop)?;
        let has_variant = |config, url: &Url| {
            self.visitors.with_cookies(url).iter().any(|(_, cookies)| visitor::variant(cookies, config).is_some())
        };
        let examiner = Examiner { app: app.clone(), shop: &self.shop, visitors: &self.visitors };
        for page in &mut self.examined {
            let is_new = has_variant(&app.config.page, &page.url) && !has_variant(&self.app.config.page, &page.url);
            let differs = page.has_different_renders() || page.visits.iter().any(|visit| !visit.differences.is_empty());
            if is_new && (differs || !self.visitors.group_cookies.is_empty()) {
                eprintln!("...  examining {} again, with its varied cookies", page.url);
                if let Some(again) = examiner.examine(&page.url).await {
                    *page = again;
                }
            }
        }
        Ok(())
    }

    /// Finds the ways by which the shop learns the visitor's country. A page that the address changes then counts as one that differs
    /// between visitors.
    pub(super) async fn compare_countries(&mut self, sample: &Sample) {
        let config = &self.app.config.page;
        let product = page_of_largest_kind(sample, &config.urls);
        let found = negotiation::find_countries(&self.shop, &self.examined, config, product).await;
        let Some(countries) = found else { return };
        self.add(countries.findings());
        if countries.by_address.is_none() {
            return;
        }
        for page in &mut self.examined {
            let Some(known) = &mut page.renders_differ else { continue };
            eprintln!("...  comparing {} by address", page.url);
            let found = negotiation::differences_by_address(&self.shop, &page.url).await.unwrap_or_default();
            page.has_random_content &= found.is_empty();
            known.extend(found);
        }
    }
}
