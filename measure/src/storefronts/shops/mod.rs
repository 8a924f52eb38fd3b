//! The storefronts: how a visitor acts in each of them, and what a page reveals about its visitor.

mod django_oscar;
mod evershop;
mod nextjs;
mod wordpress;

use xtask::failure::Failure;

use super::{
    kind::Kind,
    tally::Violation,
    visitor::{Page, Visitor},
};

/// A storefront of the folder `storefronts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "EverShop is the name of the software")]
pub enum Shop {
    DjangoOscar,
    EverShop,
    NextJs,
    WordPress,
}

impl Shop {
    const ALL: [Self; 4] = [Self::DjangoOscar, Self::EverShop, Self::NextJs, Self::WordPress];

    /// # Errors
    /// When the tests know no storefront of this name.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let shop = Self::ALL.into_iter().find(|shop| shop.name() == name);
        shop.ok_or_else(|| {
            Failure::new(format!("no tests for the storefront {name:?}"), format!("choose from: {}", known()))
        })
    }

    /// The name of its folder and of its preset.
    pub fn name(self) -> &'static str {
        match self {
            Self::DjangoOscar => "django-oscar",
            Self::EverShop => "evershop",
            Self::NextJs => "nextjs",
            Self::WordPress => "wordpress",
        }
    }

    /// The report's name of a kind of visitors.
    pub fn kind_name(self, kind: Kind) -> &'static str {
        match (self, kind) {
            // WordPress alone has no basket. A commenter is a visitor without an account whose pages are personal.
            (Self::WordPress, Kind::Basket) => "with a comment",
            _ => kind.as_str(),
        }
    }

    /// Returns whether product pages must come from the store for visitors of a kind. The preset of django-oscar has holes
    /// for everything personal on them; nothing on those of the shop with Next.js is personal.
    pub fn must_hit(self, kind: Kind) -> bool {
        matches!(self, Self::DjangoOscar | Self::NextJs) || kind.has_nothing_personal()
    }

    /// edgefront must be at least this many times as fast as the storefront alone. Next.js answers from a page cache of its
    /// own.
    pub fn min_speedup(self) -> f64 {
        if self == Self::NextJs { 2.0 } else { 5.0 }
    }

    /// Variables that the preset asks the operator to add.
    pub fn variables(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::EverShop => evershop::VARIABLES.into(),
            Self::NextJs => nextjs::VARIABLES.into(),
            Self::DjangoOscar | Self::WordPress => Vec::new(),
        }
    }

    /// The paths of all product pages.
    pub fn products(self) -> Vec<String> {
        match self {
            Self::DjangoOscar => django_oscar::products(),
            Self::EverShop => evershop::products(),
            Self::NextJs => nextjs::products(),
            Self::WordPress => wordpress::products(),
        }
    }

    /// The paths of some other pages.
    pub fn other_pages(self) -> &'static [&'static str] {
        match self {
            Self::DjangoOscar => &["/catalogue/", "/catalogue/category/kitchen_1/", "/search/?q=oak", "/offers/"],
            Self::EverShop => &["/", "/kitchen", "/search?keyword=oak", "/cart"],
            Self::NextJs => &nextjs::OTHER_PAGES,
            Self::WordPress => &["/", "/category/kitchen/", "/?s=oak"],
        }
    }

    /// Headers that a browser adds to the request for a page.
    pub fn headers(self, path: &str) -> &'static [(&'static str, &'static str)] {
        if self == Self::NextJs { nextjs::headers(path) } else { &[] }
    }

    /// Signs the visitor in; creates the account before if necessary.
    ///
    /// # Errors
    /// When the storefront refuses it.
    pub async fn sign_in(self, visitor: &Visitor) -> Result<(), Failure> {
        match self {
            Self::DjangoOscar => django_oscar::sign_in(visitor).await,
            Self::EverShop => evershop::sign_in(visitor).await,
            Self::NextJs => nextjs::sign_in(visitor).await,
            Self::WordPress => wordpress::sign_in(visitor).await,
        }
    }

    /// # Errors
    /// When the storefront refuses it.
    pub async fn sign_out(self, visitor: &Visitor) -> Result<(), Failure> {
        match self {
            Self::DjangoOscar => django_oscar::sign_out(visitor).await,
            Self::EverShop => evershop::sign_out(visitor).await,
            Self::NextJs => nextjs::sign_out(visitor).await,
            Self::WordPress => wordpress::sign_out(visitor).await,
        }
    }

    /// Gives the visitor something that no other visitor has, and that pages show.
    ///
    /// # Errors
    /// When the storefront refuses it.
    pub async fn fill_basket(self, visitor: &Visitor) -> Result<(), Failure> {
        match self {
            Self::DjangoOscar => django_oscar::fill_basket(visitor).await,
            Self::EverShop => evershop::fill_basket(visitor).await,
            Self::NextJs => nextjs::fill_basket(visitor).await,
            Self::WordPress => wordpress::comment(visitor).await,
        }
    }

    /// Compares what the page shows with what this visitor must see.
    pub fn check(self, visitor: &Visitor, page: &Page) -> Option<Violation> {
        match self {
            Self::DjangoOscar => django_oscar::check(visitor, page),
            Self::EverShop => evershop::check(visitor, page),
            Self::NextJs => nextjs::check(visitor, page),
            Self::WordPress => wordpress::check(visitor, page),
        }
    }
}

/// Compares a personal text of a page with that of the visitor: `None` stands for a page without such a text.
fn compare(what: &str, shown: Option<&str>, own: Option<&str>) -> Option<Violation> {
    match (shown, own) {
        (shown, own) if shown == own => None,
        (None, Some(own)) => Some(Violation::Anonymous(format!("no {what}, expected {own:?}"))),
        (shown, own) => Some(Violation::Leak(format!("{what} {shown:?}, expected {own:?}"))),
    }
}

/// The names of the products as the seeds of django-oscar, EverShop and the shop with Next.js combine them.
fn product_names() -> impl Iterator<Item = String> {
    let materials = ["oak", "steel", "linen", "ceramic", "wool"];
    let things = ["mug", "lamp", "chair", "basket", "clock", "kettle", "shelf", "apron", "bowl", "stool"];
    things.into_iter().flat_map(move |thing| materials.map(|material| format!("{material}-{thing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_visitors_text_is_a_leak_and_a_missing_one_an_anonymous_page() {
        assert_eq!(compare("name", Some("Ada"), Some("Ada")), None);
        assert_eq!(compare("name", None, None), None);
        assert!(matches!(compare("name", None, Some("Ada")), Some(Violation::Anonymous(_))));
        assert!(matches!(compare("name", Some("Bob"), Some("Ada")), Some(Violation::Leak(_))));
        assert!(matches!(compare("name", Some("Bob"), None), Some(Violation::Leak(_))));
    }

    #[test]
    fn the_names_of_products_are_unique() {
        let names: std::collections::BTreeSet<_> = product_names().collect();
        assert_eq!(names.len(), 50);
        assert!(names.contains("wool-stool"));
    }
}
