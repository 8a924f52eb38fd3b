//! The shop's items and their popularity. Item 0 is the most viewed one.

use std::rc::Rc;

use edgefront::{config::rules::UrlRules, page_cache::PageKey, schema::ids::ItemId};
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};
use rustc_hash::FxHashMap;

/// The number of an item; its place in the order of popularity.
pub type Item = u32;

/// Names of items begin with this.
const PREFIX: &str = "item-";

/// See the [module](self).
pub struct Catalogue {
    exponent: f64,
    zipf: Zipf<f64>,
    /// The sum of all weights.
    weights: f64,
    rules: UrlRules,
    known: FxHashMap<Item, Rc<Entry>>,
}

/// An item as the product knows it.
pub struct Entry {
    pub id: ItemId,
    pub page: PageKey,
}

impl Catalogue {
    /// `items` items whose popularity follows Zipf's law: the n-th item gets views in proportion to n^−`exponent`.
    ///
    /// # Panics
    /// If there are no items.
    #[must_use]
    pub fn new(items: u32, exponent: f64, rules: UrlRules) -> Self {
        let zipf = Zipf::new(f64::from(items), exponent).expect("at least one item");
        let weights = (1..=items).map(|place| f64::from(place).powf(-exponent)).sum();
        Self { exponent, zipf, weights, rules, known: FxHashMap::default() }
    }

    /// Draws the item of a view.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to the number of items")]
    pub fn draw(&self, random: &mut SmallRng) -> Item {
        self.zipf.sample(random) as Item - 1
    }

    /// The item's share of all views.
    #[must_use]
    pub fn share(&self, item: Item) -> f64 {
        f64::from(item + 1).powf(-self.exponent) / self.weights
    }

    /// The item's id and page.
    ///
    /// # Panics
    /// Never: the names are valid.
    pub fn entry(&mut self, item: Item) -> Rc<Entry> {
        let rules = &self.rules;
        let make = || {
            let id = ItemId::parse(&format!("{PREFIX}{item}")).expect("a valid id");
            let page = PageKey::of_url(&url(&id), rules).expect("a page that may be stored");
            Rc::new(Entry { id, page })
        };
        self.known.entry(item).or_insert_with(make).clone()
    }

    /// The item of that id.
    #[must_use]
    pub fn item(id: &str) -> Option<Item> {
        id.strip_prefix(PREFIX)?.parse().ok()
    }
}

fn url(id: &ItemId) -> String {
    format!("https://shop.example/products/{id}")
}

/// The path of an item's page.
#[must_use]
pub fn path(item: Item) -> String {
    format!("/products/{PREFIX}{item}")
}

/// The path that sets the quantity of an item in the cart.
#[must_use]
pub fn cart_path(item: Item) -> String {
    format!("/_edge/v1/cart/items/{PREFIX}{item}")
}
