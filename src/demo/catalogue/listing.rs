//! A list of products: the query of its URL, and its result.

use std::num::NonZeroU32;

use serde::Deserialize;
use url::form_urlencoded;

use super::{Category, ProductCard};
use crate::demo::format::Money;

/// The longest search text in characters, and its largest number of words.
const MAX_TEXT: usize = 64;
const MAX_WORDS: usize = 6;

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) struct Sort {
    /// The value in the URL; empty for the default.
    pub name: &'static str,
    pub label: &'static str,
}

/// The first one is the default: the best match of a search, and the most popular products of a category.
pub(in crate::demo) const SORTS: [Sort; 5] = [
    Sort { name: "", label: "Best match" },
    Sort { name: "popular", label: "Most popular" },
    Sort { name: "new", label: "Newest" },
    Sort { name: "price-low", label: "Price: low to high" },
    Sort { name: "price-high", label: "Price: high to low" },
];

/// A range of prices in cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) struct PriceRange {
    /// The value in the URL; empty for all prices.
    pub name: &'static str,
    pub label: &'static str,
    pub min: i64,
    /// Exclusive.
    pub max: i64,
}

pub(in crate::demo) const PRICES: [PriceRange; 5] = [
    PriceRange { name: "", label: "All prices", min: 0, max: i64::MAX >> 12 },
    PriceRange { name: "under-20", label: "Under €20", min: 0, max: 2000 },
    PriceRange { name: "20-50", label: "€20 to €50", min: 2000, max: 5000 },
    PriceRange { name: "50-100", label: "€50 to €100", min: 5000, max: 10_000 },
    PriceRange { name: "over-100", label: "Over €100", min: 10_000, max: i64::MAX >> 12 },
];

/// The query of a list's URL. Equal lists have equal queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::demo) struct ListQuery {
    /// The words of a search in lower case, in the order of the text. Empty for all products.
    pub words: Vec<String>,
    pub price: PriceRange,
    pub is_in_stock: bool,
    pub is_on_sale: bool,
    pub sort: Sort,
    /// Counts from 1. None if the URL has an invalid number.
    pub page: Option<NonZeroU32>,
    /// The URL has a parameter that no list has.
    pub is_foreign: bool,
}

impl Default for ListQuery {
    fn default() -> Self {
        let [sort, ..] = SORTS;
        let [price, ..] = PRICES;
        let page = Some(NonZeroU32::MIN);
        Self { words: Vec::new(), price, is_in_stock: false, is_on_sale: false, sort, page, is_foreign: false }
    }
}

impl ListQuery {
    /// Reads the query of a URL. Unknown values count as not given.
    pub(in crate::demo) fn parse(query: &str) -> Self {
        let mut list = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "q" => list.words = words(&value),
                "price" => list.price = PRICES.into_iter().find(|range| range.name == value).unwrap_or(list.price),
                "stock" => list.is_in_stock = value == "1",
                "sale" => list.is_on_sale = value == "1",
                "sort" => list.sort = SORTS.into_iter().find(|sort| sort.name == value).unwrap_or(list.sort),
                "page" => list.page = value.parse().ok(),
                _ => list.is_foreign = true,
            }
        }
        // Without words, popularity decides anyway.
        if list.words.is_empty() && list.sort.name == "popular" {
            list.sort = Self::default().sort;
        }
        list
    }

    /// The one query of this list at page `page`, with `?`; empty for the default list.
    pub(in crate::demo) fn at_page(&self, page: u32) -> String {
        let mut url = form_urlencoded::Serializer::new(String::new());
        let mut add = |is_given: bool, name: &str, value: &str| {
            if is_given {
                url.append_pair(name, value);
            }
        };
        add(!self.words.is_empty(), "q", &self.text());
        add(!self.price.name.is_empty(), "price", self.price.name);
        add(self.is_in_stock, "stock", "1");
        add(self.is_on_sale, "sale", "1");
        add(!self.sort.name.is_empty(), "sort", self.sort.name);
        add(page > 1, "page", &page.to_string());
        let query = url.finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }

    /// The query of this list's first page without filters and in the default order.
    pub(in crate::demo) fn unfiltered(&self) -> String {
        Self { words: self.words.clone(), ..Self::default() }.at_page(1)
    }

    /// The words with spaces between them.
    pub(in crate::demo) fn text(&self) -> String {
        self.words.join(" ")
    }

    /// True if a filter hides products.
    pub(in crate::demo) fn is_filtered(&self) -> bool {
        self.is_in_stock || self.is_on_sale || !self.price.name.is_empty()
    }

    /// The words as an FTS5 expression: every word is a prefix. Words contain no quotation mark.
    pub(super) fn expression(&self) -> String {
        self.words.iter().map(|word| format!("\"{word}\"*")).collect::<Vec<_>>().join(" ")
    }
}

/// The words of a search: letters and digits in lower case.
fn words(text: &str) -> Vec<String> {
    let text: String = text.chars().take(MAX_TEXT).flat_map(char::to_lowercase).collect();
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(MAX_WORDS).map(str::to_owned).collect()
}

/// One product line in a list: the card of one variant, and facts about all variants that pass the filters.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::demo) struct LineCard {
    #[serde(flatten)]
    pub card: ProductCard,
    /// Number of variants.
    pub variants: u32,
    /// The lowest and highest price of a variant.
    pub min_cents: i64,
    pub max_cents: i64,
    /// The tones of the variants, separated by spaces.
    pub tones: String,
    /// Number of lines on all pages of the list.
    pub(super) total: u32,
}

impl LineCard {
    /// The name of the product line, without the variant.
    pub(in crate::demo) fn name(&self) -> &str {
        if self.variants > 1 { self.card.line_name() } else { &self.card.name }
    }

    /// Number of variants, and the stock. The card is in stock if any variant is. A tag says that it is sold out.
    pub(in crate::demo) fn note(&self) -> String {
        match (self.variants, self.card.stock) {
            (1, 0) => String::new(),
            (1, _) => "In stock".to_owned(),
            (variants, 0) => format!("{variants} options"),
            (variants, _) => format!("{variants} options, in stock"),
        }
    }

    /// The lowest price, if the variants differ in price.
    pub(in crate::demo) fn min_price(&self) -> Option<Money<'_>> {
        (self.min_cents < self.max_cents).then_some(Money { cents: self.min_cents, currency: &self.card.currency })
    }

    /// The different tones of the variants, in their order. Empty for a single one.
    pub(in crate::demo) fn swatches(&self) -> Vec<&str> {
        let mut tones: Vec<&str> = Vec::new();
        for tone in self.tones.split(' ') {
            if !tones.contains(&tone) {
                tones.push(tone);
            }
        }
        if tones.len() > 1 { tones } else { Vec::new() }
    }
}

/// Numbers of product lines by facet, without the list's own filters.
#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::demo) struct FacetCounts {
    pub lines: u32,
    pub in_stock: u32,
    pub on_sale: u32,
    pub under_20: u32,
    pub from_20: u32,
    pub from_50: u32,
    pub from_100: u32,
    /// Number of the search's words that are words of the catalogue.
    pub known_words: usize,
}

impl FacetCounts {
    /// The number of lines in the price range at `place` of [`PRICES`], which counts from 1; None for all prices.
    pub(in crate::demo) fn in_range(&self, place: usize) -> Option<u32> {
        [self.under_20, self.from_20, self.from_50, self.from_100].into_iter().nth(place.checked_sub(2)?)
    }
}

/// One page of a list.
pub(in crate::demo) struct Listing {
    /// None for a search.
    pub category: Option<Category>,
    pub cards: Vec<LineCard>,
    pub facets: FacetCounts,
    /// Number of product lines on all pages.
    pub total: u32,
    /// Number of pages, at least 1.
    pub pages: u32,
    /// The words that the shop searched for in place of misspelled ones.
    pub corrected: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(query: &str) -> String {
        ListQuery::parse(query).at_page(1)
    }

    #[test]
    fn equal_lists_have_one_url() {
        for query in ["q=mug", "q=+Mug%20", "q=MUG&price=&sort=&page=1", "sort=best&q=mug!", "q=%22mug%22*"] {
            assert_eq!(canonical(query), "?q=mug", "{query}");
        }
        assert_eq!(canonical("page=1&price="), "");
        assert_eq!(canonical("sort=popular"), "", "the default without words");
        let all = "?q=red+kite&price=20-50&stock=1&sale=1&sort=price-low";
        assert_eq!(canonical("sort=price-low&sale=1&stock=1&price=20-50&q=Red++KITE"), all);
        assert_eq!(ListQuery::parse(&all[1..]).at_page(3), format!("{all}&page=3"));
    }

    #[test]
    fn a_search_text_has_few_words_of_letters_and_digits() {
        let words = |text: &str| ListQuery::parse(&format!("q={text}")).words;
        assert_eq!(words("Caf%C3%A9+%22OR%22+x:y"), ["café", "or", "x", "y"]);
        assert_eq!(words("1+2+3+4+5+6+7+8").len(), MAX_WORDS);
        assert_eq!(words(&"a".repeat(500)), ["a".repeat(MAX_TEXT)]);
        assert_eq!(ListQuery::parse("q=red+kite").expression(), "\"red\"* \"kite\"*");
    }

    #[test]
    fn an_invalid_page_and_an_unknown_parameter_are_recognized() {
        assert_eq!(ListQuery::parse("page=0").page, None);
        assert!(ListQuery::parse("other=1").is_foreign && !ListQuery::parse("q=other").is_foreign);
    }
}
