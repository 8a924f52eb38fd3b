//! Reads the catalogue from D1. The SQL is constant; every input is a bound parameter.

use futures_util::future::try_join;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Category, FlashOffer, ListQuery, Listing, Product, ProductCard,
    listing::{FacetCounts, LineCard},
    spelling::{CatalogueWord, correct},
};
use crate::{
    demo::rows::deserialize_rows,
    ports::{database::Database, error::Error, time::Timestamp},
    schema::ids::ItemId,
};

/// The catalogue at the time `now`, which decides which sales run.
pub(in crate::demo) struct Catalogue<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
    /// A flash sale that ended at this time or earlier holds no pieces.
    pub released: Timestamp,
}

const CARDS_PER_PAGE: u32 = 24;

/// SQL: the pieces of an inventory row that only the flash sale's own checkout may sell. `$released` is
/// [`Shop::released`](crate::demo::Shop::released) in Unix seconds.
macro_rules! reserved_for_flash_sale {
    ($released:literal) => {
        concat!("CASE WHEN ", $released, " < sale_ends_at THEN coalesce(sale_pieces - sale_sold, 0) ELSE 0 END")
    };
}
pub(in crate::demo) use reserved_for_flash_sale;

/// SQL: selects [`ProductCard`]s with extra columns. `?1` and `?2` are the times of the [`Catalogue`] in Unix seconds.
macro_rules! select_cards {
    ($extra_columns:literal, $rest:expr) => {
        concat!(
            "SELECT products.id, products.line, products.name, products.currency, products.picture, products.tone,
                max(0, inventory.stock - ",
            reserved_for_flash_sale!("?2"),
            ") AS stock,
                products.price_cents AS list_cents,
                CASE WHEN sale_pieces > sale_sold AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                    THEN sale_price_cents END AS live_flash_cents,
                CASE WHEN sale_pieces IS NULL AND sale_starts_at <= ?1 AND ?1 < sale_ends_at
                    THEN sale_price_cents ELSE inventory.price_cents END AS price_cents",
            $extra_columns,
            " FROM products JOIN inventory ON inventory.id = products.id ",
            $rest
        )
    };
}

/// SQL: selects [`FlashOffer`]s. `?1` and `?2` are as in `select_cards`.
macro_rules! select_offers {
    ($condition:literal) => {
        select_cards!(
            ", category, categories.name AS category_name, description, sale_price_cents AS sale_cents,
                sale_starts_at AS starts, sale_ends_at AS ends, sale_pieces - sale_sold AS pieces_left",
            concat!("JOIN categories ON categories.id = category WHERE sale_pieces IS NOT NULL AND ", $condition)
        )
    };
}

/// SQL: the cards and the facets of a list, both from the variants that `$rest` selects. `?1` and `?2` are as in
/// `select_cards`, `?3` is the list's scope.
/// Starts with SELECT: a common table expression would hide from the tests that it writes nothing.
///
/// A line's card is the variant that the search names, then one in a flash sale, then one in stock, then a reduced one, then the
/// cheapest. `shown_cents` is the price on the card: that of a running flash sale with pieces, else the current one.
macro_rules! list {
    ($score:literal, $rest:literal) => {
        (
            concat!(
                "SELECT *, count(*) OVER () AS total FROM (
                    SELECT *, count(*) OVER lines AS variants, sum(sold) OVER lines AS line_sold,
                        min(shown_cents) OVER lines AS min_cents, max(shown_cents) OVER lines AS max_cents,
                        group_concat(tone, ' ') OVER lines AS tones,
                        row_number() OVER (PARTITION BY line
                            ORDER BY instr(lower(name), ?9) = 0, live_flash_cents IS NULL, stock = 0, shown_cents >= list_cents, shown_cents, name) AS place
                    FROM (SELECT *, coalesce(live_flash_cents, price_cents) AS shown_cents FROM (",
                select_cards!(", sold, age_days", $rest),
                ")) WHERE stock >= ?4 AND (?5 = 0 OR shown_cents < list_cents) AND shown_cents >= ?6 AND shown_cents < ?7
                    WINDOW lines AS (PARTITION BY line ORDER BY list_cents, name
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
                ) AS lines ",
                $score,
                " WHERE place = 1
                ORDER BY CASE ?8 WHEN 'new' THEN age_days WHEN 'price-low' THEN shown_cents WHEN 'price-high' THEN -shown_cents
                    WHEN 'popular' THEN 0 ELSE score END, line_sold DESC, name LIMIT ?10 OFFSET ?11"
            ),
            concat!(
                "SELECT count(DISTINCT line) AS lines, count(DISTINCT CASE WHEN stock > 0 THEN line END) AS in_stock,
                    count(DISTINCT CASE WHEN shown_cents < list_cents THEN line END) AS on_sale,
                    count(DISTINCT CASE WHEN shown_cents < 2000 THEN line END) AS under_20,
                    count(DISTINCT CASE WHEN shown_cents >= 2000 AND shown_cents < 5000 THEN line END) AS from_20,
                    count(DISTINCT CASE WHEN shown_cents >= 5000 AND shown_cents < 10000 THEN line END) AS from_50,
                    count(DISTINCT CASE WHEN shown_cents >= 10000 THEN line END) AS from_100,
                    (SELECT count(*) FROM json_each(?4) WHERE EXISTS (SELECT 1 FROM search_words WHERE term = value)) AS known_words
                FROM (SELECT *, coalesce(live_flash_cents, price_cents) AS shown_cents FROM (",
                select_cards!("", $rest),
                "))"
            ),
        )
    };
}

/// A category; `?3` is its id, or empty for all products.
const LISTS: (&str, &str) = list!("JOIN (SELECT 0 AS score)", "WHERE ?3 IN ('', category)");
/// A search; `?3` is an FTS5 expression. A name counts most, then variants, category and description. Scores are
/// rounded, so that popularity decides between similar ones.
const SEARCHES: (&str, &str) = list!(
    "JOIN (SELECT line AS found, round(bm25(product_search, 0, 10, 6, 3, 1)) AS score FROM product_search WHERE product_search MATCH ?3)
        ON found = line",
    "WHERE line IN (SELECT line FROM product_search WHERE product_search MATCH ?3)"
);

impl Catalogue<'_> {
    /// Every category, in the order of the home page.
    pub(in crate::demo) async fn categories(&self) -> Result<Vec<Category>, Error> {
        let sql = "SELECT id, name, blurb, picture, tone, (SELECT count(DISTINCT line) FROM products WHERE category = categories.id) AS products
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
        self.select(sql, &self.timed(&[])).await
    }

    /// Current and upcoming flash sales: at most four, earliest start first.
    pub(in crate::demo) async fn flash_sales(&self) -> Result<Vec<FlashOffer>, Error> {
        let sql = select_offers!("?1 < sale_ends_at ORDER BY sale_starts_at, products.name LIMIT 4");
        self.select(sql, &self.timed(&[])).await
    }

    /// The flash sale of a product, even after its end.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the product has no flash sale.
    pub(in crate::demo) async fn flash_sale(&self, id: &ItemId) -> Result<FlashOffer, Error> {
        let offers = self.select(select_offers!("products.id = ?3"), &self.timed(&[json!(id.as_str())])).await?;
        offers.into_iter().next().ok_or(Error::NotFound("flash sale"))
    }

    /// One page of a category.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the category or the page does not exist.
    pub(in crate::demo) async fn category(&self, id: &str, query: &ListQuery) -> Result<Listing, Error> {
        let category = "SELECT id, name, blurb, picture, tone, (SELECT count(DISTINCT line) FROM products WHERE category = ?1) AS products
            FROM categories WHERE id = ?1";
        let binds = [json!(id)];
        let (categories, listing) =
            try_join(self.select::<Category>(category, &binds), self.list(LISTS.0, LISTS.1, id, query)).await?;
        let category = categories.into_iter().next().ok_or(Error::NotFound("category"))?;
        Ok(Listing { category: Some(category), ..listing })
    }

    /// One page of a search; of all products without words. If no product matches, the search is repeated once with
    /// misspelled words corrected.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the page does not exist.
    pub(in crate::demo) async fn search(&self, query: &ListQuery) -> Result<Listing, Error> {
        if query.words.is_empty() {
            return self.list(LISTS.0, LISTS.1, "", query).await;
        }
        let listing = self.list(SEARCHES.0, SEARCHES.1, &query.expression(), query).await?;
        if listing.facets.lines > 0 {
            return Ok(listing);
        }
        let known = self.select::<CatalogueWord>("SELECT term, doc FROM search_words", &[]).await?;
        let Some(words) = correct(&query.words, &known) else { return Ok(listing) };
        let corrected = ListQuery { words, ..query.clone() };
        let found = self.list(SEARCHES.0, SEARCHES.1, &corrected.expression(), &corrected).await?;
        Ok(if found.facets.lines > 0 { Listing { corrected: Some(corrected.text()), ..found } } else { listing })
    }

    /// Reads one page of a list and its facets, with one query for each.
    async fn list(&self, cards: &str, facets: &str, scope: &str, query: &ListQuery) -> Result<Listing, Error> {
        let page = query.page.ok_or(Error::NotFound("page"))?.get();
        let offset = u64::from(page - 1) * u64::from(CARDS_PER_PAGE);
        let last_word = query.words.last().map_or("", String::as_str);
        let card_binds = self.timed(&[
            json!(scope),
            json!(u8::from(query.is_in_stock)),
            json!(u8::from(query.is_on_sale)),
            json!(query.price.min),
            json!(query.price.max),
            json!(query.sort.name),
            json!(last_word),
            json!(CARDS_PER_PAGE),
            json!(offset),
        ]);
        let facet_binds = self.timed(&[json!(scope), json!(json!(query.words).to_string())]);
        let (cards, facets) =
            try_join(self.select::<LineCard>(cards, &card_binds), self.select::<FacetCounts>(facets, &facet_binds))
                .await?;
        let total = cards.first().map_or(0, |card| card.total);
        if cards.is_empty() && page > 1 {
            return Err(Error::NotFound("page"));
        }
        let facets = facets.into_iter().next().unwrap_or_default();
        let pages = total.div_ceil(CARDS_PER_PAGE).max(1);
        Ok(Listing { category: None, cards, facets, total, pages, corrected: None })
    }

    /// A product and all variants of its product line, itself included.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the product does not exist.
    pub(in crate::demo) async fn product(&self, id: &ItemId) -> Result<(Product, Vec<ProductCard>), Error> {
        let product = select_cards!(
            ", category, categories.name AS category_name, description, details,
                CASE WHEN sale_pieces IS NOT NULL AND ?1 < sale_ends_at THEN sale_price_cents END AS flash_cents",
            "JOIN categories ON categories.id = category WHERE products.id = ?3"
        );
        let variants = select_cards!(
            "",
            "WHERE line = (SELECT line FROM products WHERE id = ?3) ORDER BY list_cents, products.rowid"
        );
        let binds = self.timed(&[json!(id.as_str())]);
        let (products, variants) =
            try_join(self.select::<Product>(product, &binds), self.select::<ProductCard>(variants, &binds)).await?;
        let product = products.into_iter().next().ok_or(Error::NotFound("product"))?;
        Ok((product, variants))
    }

    /// The products with these ids; unknown ids are left out. One JSON parameter carries all ids.
    pub(in crate::demo) async fn cards(&self, ids: &[String]) -> Result<Vec<ProductCard>, Error> {
        let sql = select_cards!("", "WHERE products.id IN (SELECT value FROM json_each(?3))");
        self.select(sql, &self.timed(&[json!(json!(ids).to_string())])).await
    }

    /// The id of every product.
    pub(in crate::demo) async fn ids(&self) -> Result<Vec<String>, Error> {
        #[derive(serde::Deserialize)]
        struct Id {
            id: String,
        }
        let rows: Vec<Id> = self.select("SELECT id FROM products ORDER BY rowid", &[]).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    /// The parameters of a query that reads sales: `?1` and `?2` are the catalogue's times, in Unix seconds.
    fn timed(&self, binds: &[Value]) -> Vec<Value> {
        [&[json!(self.now.as_secs()), json!(self.released.as_secs())], binds].concat()
    }

    async fn select<T: DeserializeOwned>(&self, sql: &str, binds: &[Value]) -> Result<Vec<T>, Error> {
        deserialize_rows(self.database.query(sql, binds).await?)
    }
}
