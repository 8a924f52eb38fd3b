//! Reads the catalogue from D1. The SQL is constant; every input is a bound parameter.

use std::num::NonZeroU32;

use futures_util::future::try_join;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Category, CategoryListing, FlashOffer, Product, ProductCard};
use crate::{
    demo::rows::deserialize_rows,
    ports::{database::Database, error::Error, time::Timestamp},
    schema::ids::ItemId,
};

/// The catalogue at the time `now`, which decides which sales run.
pub(in crate::demo) struct Catalogue<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
}

const CARDS_PER_PAGE: u32 = 24;

/// SQL: the pieces of an inventory row that only the flash sale's own checkout may sell. `$now` is in Unix seconds.
macro_rules! reserved_for_flash_sale {
    ($now:literal) => {
        concat!("CASE WHEN ", $now, " < sale_ends_at THEN coalesce(sale_pieces - sale_sold, 0) ELSE 0 END")
    };
}
pub(in crate::demo) use reserved_for_flash_sale;

/// SQL: selects [`ProductCard`]s with extra columns. `?1` is now in Unix seconds.
macro_rules! select_cards {
    ($extra_columns:literal, $rest:expr) => {
        concat!(
            "SELECT products.id, products.name, products.currency, products.picture, products.tone,
                max(0, inventory.stock - ",
            reserved_for_flash_sale!("?1"),
            ") AS stock,
                products.price_cents AS list_cents,
                CASE WHEN sale_pieces IS NULL AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                    THEN sale_price_cents ELSE inventory.price_cents END AS price_cents",
            $extra_columns,
            " FROM products JOIN inventory ON inventory.id = products.id ",
            $rest
        )
    };
}

/// SQL: selects [`FlashOffer`]s. `?1` is now in Unix seconds.
macro_rules! select_offers {
    ($condition:literal) => {
        select_cards!(
            ", category, categories.name AS category_name, description, sale_price_cents AS sale_cents,
                sale_starts_at AS starts, sale_ends_at AS ends, sale_pieces AS pieces",
            concat!("JOIN categories ON categories.id = category WHERE sale_pieces IS NOT NULL AND ", $condition)
        )
    };
}

impl Catalogue<'_> {
    /// Every category, in the order of the home page.
    pub(in crate::demo) async fn categories(&self) -> Result<Vec<Category>, Error> {
        let sql = "SELECT id, name, blurb, picture, tone, (SELECT count(*) FROM products WHERE category = categories.id) AS products
            FROM categories ORDER BY position";
        self.select(sql, &[]).await
    }

    /// Products on sale now: at most eight, earliest end first.
    pub(in crate::demo) async fn on_sale(&self) -> Result<Vec<ProductCard>, Error> {
        let sql = select_cards!(
            "",
            "WHERE sale_pieces IS NULL AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                ORDER BY sale_ends_at, name LIMIT 8"
        );
        self.select(sql, &[self.now()]).await
    }

    /// Current and upcoming flash sales: at most four, earliest start first.
    pub(in crate::demo) async fn flash_sales(&self) -> Result<Vec<FlashOffer>, Error> {
        let sql = select_offers!("?1 < sale_ends_at ORDER BY sale_starts_at, products.name LIMIT 4");
        self.select(sql, &[self.now()]).await
    }

    /// The flash sale of a product, even after its end.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the product has no flash sale.
    pub(in crate::demo) async fn flash_sale(&self, id: &ItemId) -> Result<FlashOffer, Error> {
        let offers = self.select(select_offers!("products.id = ?2"), &[self.now(), json!(id.as_str())]).await?;
        offers.into_iter().next().ok_or(Error::NotFound("flash sale"))
    }

    /// One page of a category.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the category or the page does not exist.
    pub(in crate::demo) async fn category(&self, id: &str, page: NonZeroU32) -> Result<CategoryListing, Error> {
        let category =
            "SELECT id, name, blurb, picture, tone, (SELECT count(*) FROM products WHERE category = ?1) AS products
            FROM categories WHERE id = ?1";
        let cards = select_cards!("", "WHERE category = ?2 ORDER BY name LIMIT ?3 OFFSET ?4");
        let offset = u64::from(page.get() - 1) * u64::from(CARDS_PER_PAGE);
        let category_binds = [json!(id)];
        let card_binds = [self.now(), json!(id), json!(CARDS_PER_PAGE), json!(offset)];
        let (categories, cards) = try_join(
            self.select::<Category>(category, &category_binds),
            self.select::<ProductCard>(cards, &card_binds),
        )
        .await?;
        let category = categories.into_iter().next().ok_or(Error::NotFound("category"))?;
        let pages = category.products.div_ceil(CARDS_PER_PAGE).max(1);
        if page.get() > pages {
            return Err(Error::NotFound("page"));
        }
        Ok(CategoryListing { category, cards, page, pages })
    }

    /// A product and the other variants of its product line.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the product does not exist.
    pub(in crate::demo) async fn product(&self, id: &ItemId) -> Result<(Product, Vec<ProductCard>), Error> {
        let product = select_cards!(
            ", category, categories.name AS category_name, description, details,
                CASE WHEN sale_pieces IS NOT NULL AND ?1 < sale_ends_at THEN sale_price_cents END AS flash_cents",
            "JOIN categories ON categories.id = category WHERE products.id = ?2"
        );
        let variants = select_cards!(
            "",
            "WHERE line = (SELECT line FROM products WHERE id = ?2) AND products.id <> ?2 ORDER BY list_cents, name"
        );
        let binds = [self.now(), json!(id.as_str())];
        let (products, variants) =
            try_join(self.select::<Product>(product, &binds), self.select::<ProductCard>(variants, &binds)).await?;
        let product = products.into_iter().next().ok_or(Error::NotFound("product"))?;
        Ok((product, variants))
    }

    /// The products with these ids; unknown ids are left out. One JSON parameter carries all ids.
    pub(in crate::demo) async fn cards(&self, ids: &[String]) -> Result<Vec<ProductCard>, Error> {
        let sql = select_cards!("", "WHERE products.id IN (SELECT value FROM json_each(?2))");
        self.select(sql, &[self.now(), json!(json!(ids).to_string())]).await
    }

    /// True if the catalogue has this product.
    pub(in crate::demo) async fn has_product(&self, id: &ItemId) -> Result<bool, Error> {
        Ok(!self.cards(&[id.to_string()]).await?.is_empty())
    }

    fn now(&self) -> Value {
        json!(self.now.as_secs())
    }

    async fn select<T: DeserializeOwned>(&self, sql: &str, binds: &[Value]) -> Result<Vec<T>, Error> {
        deserialize_rows(self.database.query(sql, binds).await?)
    }
}
