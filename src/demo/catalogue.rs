//! The goods, read from D1. The SQL is fixed text; whatever comes from outside is a bound parameter.

use std::num::NonZeroU32;

use futures_util::future::try_join;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value, json};

use crate::{
    ports::{
        database::{Database, Row},
        error::Error,
        time::Timestamp,
    },
    schema::ids::ItemId,
};

/// The catalogue as it is at one moment.
pub(super) struct Catalogue<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Category {
    pub id: String,
    pub name: String,
    pub blurb: String,
    /// How many products there are.
    pub products: u32,
    /// A symbol of `assets/pictures.svg`, and the class it is coloured by.
    pub picture: String,
    pub tone: String,
}

/// A product as it shows in a list.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct Card {
    pub id: String,
    pub name: String,
    /// ISO 4217.
    pub currency: String,
    /// The current price.
    pub price_cents: i64,
    /// The regular price.
    pub list_cents: i64,
    /// Pieces for everybody: what a flash sale still promises is not among them.
    pub stock: i64,
    /// A symbol of `assets/pictures.svg`, and the class it is coloured by.
    pub picture: String,
    pub tone: String,
}

/// A product as it shows on its own page.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Product {
    #[serde(flatten)]
    pub card: Card,
    pub category: String,
    pub category_name: String,
    pub description: String,
    /// The flash sale price, if a sale is live or upcoming.
    #[serde(default)]
    pub flash_cents: Option<i64>,
    /// Label → text, in the order of the page.
    #[serde(deserialize_with = "json_text")]
    pub details: Map<String, Value>,
}

/// A flash sale, as its page tells it to everybody: what changes comes from the edge.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Offer {
    /// With what it costs outside of the sale.
    #[serde(flatten)]
    pub card: Card,
    pub category: String,
    pub category_name: String,
    pub description: String,
    /// The sale price of a piece.
    pub sale_cents: i64,
    /// Unix seconds.
    pub starts: u64,
    pub ends: u64,
    pub pieces: u32,
}

/// One page of a category.
pub(super) struct Shelf {
    pub category: Category,
    pub cards: Vec<Card>,
    /// Counts from 1.
    pub page: NonZeroU32,
    pub pages: u32,
}

const CARDS_A_PAGE: u32 = 24;

/// The pieces of an inventory row that a flash sale still promises: they are for its own checkout only. `$now` in Unix seconds.
macro_rules! promised_pieces {
    ($now:literal) => {
        concat!("CASE WHEN ", $now, " < sale_ends_at THEN coalesce(sale_pieces - sale_sold, 0) ELSE 0 END")
    };
}
pub(super) use promised_pieces;

/// SELECT of [`Card`]s; `?1` is now, in Unix seconds.
macro_rules! select_cards {
    ($more:literal, $rest:expr) => {
        concat!(
            "SELECT products.id, products.name, products.currency, products.picture, products.tone,
                max(0, inventory.stock - ",
            promised_pieces!("?1"),
            ") AS stock,
                products.price_cents AS list_cents,
                CASE WHEN sale_pieces IS NULL AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                    THEN sale_price_cents ELSE inventory.price_cents END AS price_cents",
            $more,
            " FROM products JOIN inventory ON inventory.id = products.id ",
            $rest
        )
    };
}

/// SELECT of [`Offer`]s; `?1` as in `select_cards`.
macro_rules! select_offers {
    ($which:literal) => {
        select_cards!(
            ", category, categories.name AS category_name, description, sale_price_cents AS sale_cents,
                sale_starts_at AS starts, sale_ends_at AS ends, sale_pieces AS pieces",
            concat!("JOIN categories ON categories.id = category WHERE sale_pieces IS NOT NULL AND ", $which)
        )
    };
}

impl Catalogue<'_> {
    /// Every category, in the order of the home page.
    pub(super) async fn categories(&self) -> Result<Vec<Category>, Error> {
        let sql = "SELECT id, name, blurb, picture, tone, (SELECT count(*) FROM products WHERE category = categories.id) AS products
            FROM categories ORDER BY position";
        self.select(sql, &[]).await
    }

    /// Items on sale now: at most eight, the earliest end first.
    pub(super) async fn on_sale(&self) -> Result<Vec<Card>, Error> {
        let sql = select_cards!(
            "",
            "WHERE sale_pieces IS NULL AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                ORDER BY sale_ends_at, name LIMIT 8"
        );
        self.select(sql, &[self.now()]).await
    }

    /// The flash sales that run or are to come: at most four, those that begin first.
    pub(super) async fn flash_sales(&self) -> Result<Vec<Offer>, Error> {
        let sql = select_offers!("?1 < sale_ends_at ORDER BY sale_starts_at, products.name LIMIT 4");
        self.select(sql, &[self.now()]).await
    }

    /// The flash sale of a product, also when it is over.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it has none.
    pub(super) async fn flash_sale(&self, id: &ItemId) -> Result<Offer, Error> {
        let offers = self.select(select_offers!("products.id = ?2"), &[self.now(), json!(id.as_str())]).await?;
        offers.into_iter().next().ok_or(Error::NotFound("flash sale"))
    }

    /// One page of a category.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such category, or no such page of it.
    pub(super) async fn category(&self, id: &str, page: NonZeroU32) -> Result<Shelf, Error> {
        let category =
            "SELECT id, name, blurb, picture, tone, (SELECT count(*) FROM products WHERE category = ?1) AS products
            FROM categories WHERE id = ?1";
        let cards = select_cards!("", "WHERE category = ?2 ORDER BY name LIMIT ?3 OFFSET ?4");
        let offset = u64::from(page.get() - 1) * u64::from(CARDS_A_PAGE);
        let (whose, which) = ([json!(id)], [self.now(), json!(id), json!(CARDS_A_PAGE), json!(offset)]);
        let (categories, cards) =
            try_join(self.select::<Category>(category, &whose), self.select::<Card>(cards, &which)).await?;
        let category = categories.into_iter().next().ok_or(Error::NotFound("category"))?;
        let pages = category.products.div_ceil(CARDS_A_PAGE).max(1);
        if page.get() > pages {
            return Err(Error::NotFound("page"));
        }
        Ok(Shelf { category, cards, page, pages })
    }

    /// A product, and what else there is of its line.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such product.
    pub(super) async fn product(&self, id: &ItemId) -> Result<(Product, Vec<Card>), Error> {
        let product = select_cards!(
            ", category, categories.name AS category_name, description, details,
                CASE WHEN sale_pieces IS NOT NULL AND ?1 < sale_ends_at THEN sale_price_cents END AS flash_cents",
            "JOIN categories ON categories.id = category WHERE products.id = ?2"
        );
        let siblings = select_cards!(
            "",
            "WHERE line = (SELECT line FROM products WHERE id = ?2) AND products.id <> ?2 ORDER BY list_cents, name"
        );
        let bound = [self.now(), json!(id.as_str())];
        let (products, siblings) =
            try_join(self.select::<Product>(product, &bound), self.select::<Card>(siblings, &bound)).await?;
        let product = products.into_iter().next().ok_or(Error::NotFound("product"))?;
        Ok((product, siblings))
    }

    /// The products of `ids`, as far as there are such. One parameter carries them all.
    pub(super) async fn cards(&self, ids: &[String]) -> Result<Vec<Card>, Error> {
        let sql = select_cards!("", "WHERE products.id IN (SELECT value FROM json_each(?2))");
        self.select(sql, &[self.now(), json!(json!(ids).to_string())]).await
    }

    /// Returns whether there is such a product.
    pub(super) async fn sells(&self, id: &ItemId) -> Result<bool, Error> {
        Ok(!self.cards(&[id.to_string()]).await?.is_empty())
    }

    fn now(&self) -> Value {
        json!(self.now.as_secs())
    }

    async fn select<T: DeserializeOwned>(&self, sql: &str, bound: &[Value]) -> Result<Vec<T>, Error> {
        read(self.database.query(sql, bound).await?)
    }
}

/// Reads rows as what the schema says they are.
///
/// # Errors
/// [`Error::Platform`] if they are something else.
pub(super) fn read<T: DeserializeOwned>(rows: Vec<Row>) -> Result<Vec<T>, Error> {
    let read = rows.into_iter().map(|row| serde_json::from_value(Value::Object(row))).collect::<Result<_, _>>();
    read.map_err(|error| Error::Platform(format!("a table does not fit its schema: {error}")))
}

fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}
