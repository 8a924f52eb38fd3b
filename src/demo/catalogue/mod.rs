//! The catalogue in D1: categories, products and flash sales.
//!
//! - `queries`: the SQL. `listing`: lists of products, their filters and their order.
//! - `variants`: the choices of a product line. `spelling`: misspelled words of a search.

mod listing;
mod queries;
mod spelling;
mod variants;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

pub(super) use self::{
    listing::{ListQuery, Listing, PRICES, SORTS, Sort},
    queries::{Catalogue, reserved_for_flash_sale},
    variants::{Choice, choices},
};
use super::format::{Money, date_and_time};

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Category {
    pub id: String,
    pub name: String,
    pub blurb: String,
    /// Number of product lines in the category.
    pub products: u32,
    /// A symbol in `assets/pictures.svg`.
    pub picture: String,
    /// The picture's colour: a class in `assets/shop/pictures.css`.
    pub tone: String,
}

/// A product in a list.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct ProductCard {
    pub id: String,
    /// The product line: all variants of a product have the same one.
    pub line: String,
    pub name: String,
    /// ISO 4217.
    pub currency: String,
    /// The price to pay now.
    pub price_cents: i64,
    /// The price without a sale.
    pub list_cents: i64,
    /// The price in a flash sale that runs and has pieces.
    #[serde(default)]
    pub live_flash_cents: Option<i64>,
    /// Pieces in stock, without those reserved for a flash sale.
    pub stock: i64,
    /// A symbol in `assets/pictures.svg`.
    pub picture: String,
    /// The picture's colour: a class in `assets/shop/pictures.css`.
    pub tone: String,
}

/// A product on its own page.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Product {
    #[serde(flatten)]
    pub card: ProductCard,
    pub category: String,
    pub category_name: String,
    pub description: String,
    /// The price in the product's current or upcoming flash sale.
    #[serde(default)]
    pub flash_cents: Option<i64>,
    /// Label → text, in display order.
    #[serde(deserialize_with = "json_text")]
    pub details: Map<String, Value>,
}

/// A flash sale as its cached page shows it. Remaining stock comes from the edge's API.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FlashOffer {
    /// The product. Its `list_cents` are the price outside the sale.
    #[serde(flatten)]
    pub card: ProductCard,
    pub category: String,
    pub category_name: String,
    pub description: String,
    /// The price of one piece in the sale.
    pub sale_cents: i64,
    /// Unix seconds.
    pub starts: u64,
    /// Unix seconds.
    pub ends: u64,
    /// The pieces that are not sold. Scripts show the current number.
    pub pieces_left: u32,
}

impl ProductCard {
    pub(super) fn price(&self) -> Money<'_> {
        Money { cents: self.price_cents, currency: &self.currency }
    }

    /// The price without a sale; None if the product is not reduced.
    pub(super) fn list_price(&self) -> Option<Money<'_>> {
        (self.list_cents > self.price_cents).then_some(Money { cents: self.list_cents, currency: &self.currency })
    }

    /// The price that lists show: that of a running flash sale with pieces, else [`price`](Self::price).
    pub(super) fn shown_price(&self) -> Money<'_> {
        Money { cents: self.live_flash_cents.unwrap_or(self.price_cents), currency: &self.currency }
    }

    /// The price without a sale, which lists strike through; None if [`shown_price`](Self::shown_price) is not lower.
    pub(super) fn struck_price(&self) -> Option<Money<'_>> {
        let is_reduced = self.list_cents > self.shown_price().cents;
        is_reduced.then_some(Money { cents: self.list_cents, currency: &self.currency })
    }

    /// The discount in percent of the list price, rounded down; None below one percent.
    pub(super) fn percent_off(&self) -> Option<i64> {
        let percent = (self.list_cents - self.price_cents).checked_mul(100)?.checked_div(self.list_cents)?;
        (percent > 0).then_some(percent)
    }

    /// The name without the product line: `Oak, 35 cm` of `End-Grain Chopping Board, Oak, 35 cm`.
    pub(super) fn variant(&self) -> &str {
        self.name.split_once(", ").map_or(self.name.as_str(), |(_, variant)| variant)
    }

    /// The name of the product line: `End-Grain Chopping Board` of `End-Grain Chopping Board, Oak, 35 cm`.
    pub(super) fn line_name(&self) -> &str {
        self.name.split_once(", ").map_or(self.name.as_str(), |(line, _)| line)
    }
}

impl Product {
    pub(super) fn flash_price(&self) -> Option<Money<'_>> {
        self.flash_cents.map(|cents| Money { cents, currency: &self.card.currency })
    }
}

impl FlashOffer {
    /// The price of one piece in the sale.
    pub(super) fn price(&self) -> Money<'_> {
        Money { cents: self.sale_cents, currency: &self.card.currency }
    }

    /// The price outside the sale.
    pub(super) fn list_price(&self) -> Money<'_> {
        Money { cents: self.card.list_cents, currency: &self.card.currency }
    }

    pub(super) fn start(&self) -> String {
        date_and_time(self.starts)
    }

    pub(super) fn end(&self) -> String {
        date_and_time(self.ends)
    }
}

/// Reads a column of JSON text. `serde_json` preserves the order of an object's members.
fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// A product for tests.
#[cfg(test)]
pub(super) fn test_card(list_cents: i64, price_cents: i64, stock: i64) -> ProductCard {
    let (id, name, currency) = ("mug".to_owned(), "Mug, <Sage> & \"Ink\"".to_owned(), "EUR".to_owned());
    let (line, picture, tone) = ("mug".to_owned(), "mug".to_owned(), "sage".to_owned());
    ProductCard { id, line, name, currency, price_cents, list_cents, live_flash_cents: None, stock, picture, tone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discount_is_rounded_down_and_hidden_below_one_percent() {
        for (list, price, percent) in
            [(1400, 1050, Some(25)), (1000, 999, None), (999, 667, Some(33)), (1000, 1200, None)]
        {
            assert_eq!(test_card(list, price, 3).percent_off(), percent, "{list} {price}");
        }
    }

    #[test]
    fn a_variant_is_the_name_after_the_product_line() {
        let variant = |name: &str| ProductCard { name: name.to_owned(), ..test_card(1, 1, 1) }.variant().to_owned();
        assert_eq!(variant("End-Grain Chopping Board, Oak, 35 cm"), "Oak, 35 cm");
        assert_eq!(variant("Kite"), "Kite");
    }
}
