//! Orders in D1. An order, its lines and its stock changes are one transaction. The schema's constraints keep the stock
//! from going below zero when several buyers order at once.

use serde_json::{Value, json};

use super::{Customer, DemoOrder, DemoOrderId, DemoOrderLine};
use crate::{
    demo::{
        cart::PricedCart,
        catalogue::{FlashOffer, reserved_for_flash_sale},
        rows::deserialize_rows,
    },
    ports::{
        database::{Database, DatabaseError, Statement},
        error::Error,
        time::Timestamp,
    },
    schema::ids::ItemId,
};

/// The orders in the database; `now` is the time of a new order.
pub(in crate::demo) struct OrderStore<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
    /// A flash sale that ended at this time or earlier holds no pieces.
    pub released: Timestamp,
}

/// SQL: selects [`DemoOrder`]s.
macro_rules! select_orders {
    ($condition:literal) => {
        concat!(
            "SELECT id, user, mail AS email, name, address, total_cents, currency, placed_at,
                EXISTS (SELECT 1 FROM flash_purchases WHERE order_id = orders.id) AS is_flash FROM orders ",
            $condition
        )
    };
}

const INSERT_ORDER: &str =
    "INSERT INTO orders (id, user, mail, name, address, total_cents, currency, placed_at, checkout)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
/// All lines are one parameter: a statement for each of a hundred lines would exceed the queries of a request on the
/// Free plan.
const INSERT_LINES: &str = "INSERT INTO order_lines (order_id, item, quantity, price_cents)
    SELECT ?1, value ->> 'item', value ->> 'quantity', value ->> 'price_cents' FROM json_each(?2)";
/// Sets the stock to -1, which the schema refuses, if the order would use pieces that a flash sale still reserves.
const TAKE_STOCK: &str = concat!(
    "UPDATE inventory SET updated_at = ?2, stock = CASE WHEN stock - (line.value ->> 'quantity') < ",
    reserved_for_flash_sale!("?3"),
    " THEN -1 ELSE stock - (line.value ->> 'quantity') END
    FROM json_each(?1) AS line WHERE inventory.id = line.value ->> 'item'"
);

/// Counts the pieces for the order by popularity.
const COUNT_SOLD: &str = "UPDATE products SET sold = sold + (line.value ->> 'quantity')
    FROM json_each(?1) AS line WHERE products.id = line.value ->> 'item'";

/// Saves the address for the account. A guest has none.
const SAVE_ADDRESS: &str = "INSERT INTO addresses (user, address, used_at) SELECT ?1, ?2, ?3 WHERE ?1 IS NOT NULL
    ON CONFLICT (user, address) DO UPDATE SET used_at = excluded.used_at";

/// The table's primary key allows one purchase per user and sale. If the sale or its price is not the one that the
/// buyer saw, the subquery is NULL, which the schema refuses.
const INSERT_PURCHASE: &str = "INSERT INTO flash_purchases (item, user, order_id, sale_starts_at) VALUES (?1, ?2, ?3,
    (SELECT sale_starts_at FROM inventory WHERE id = ?1 AND sale_pieces > 0 AND sale_starts_at = ?4 AND sale_price_cents = ?5))";
const TAKE_PIECE: &str =
    "UPDATE inventory SET sale_sold = sale_sold + 1, stock = stock - 1, updated_at = ?2 WHERE id = ?1";

impl OrderStore<'_> {
    /// Places an order for `cart` at the prices that `cart` holds. Returns false and changes nothing if a constraint
    /// refuses: the order exists already, another order has used the [`ticket`](crate::demo::checkout::ticket), or an item is
    /// out of stock.
    ///
    /// # Errors
    /// [`Error::Database`] if the database fails. The order may or may not exist then; a retry with the same `id` is
    /// safe.
    pub(in crate::demo) async fn place(
        &self,
        id: &DemoOrderId,
        customer: &Customer<'_>,
        cart: &PricedCart,
        ticket: Option<&str>,
    ) -> Result<bool, Error> {
        let lines = cart.lines.iter().filter_map(|line| {
            let price = line.card.as_ref()?.price_cents;
            Some(json!({"item": line.id, "quantity": line.quantity, "price_cents": price}))
        });
        let lines = json!(lines.collect::<Value>().to_string());
        let now = json!(self.now.as_secs());
        let mut order = self.order_binds(id, customer, cart.total_cents(), cart.currency());
        order.push(json!(ticket));
        self.commit(&[
            (INSERT_ORDER, order),
            (INSERT_LINES, vec![json!(id.0), lines.clone()]),
            (COUNT_SOLD, vec![lines.clone()]),
            self.save_address(customer),
            (TAKE_STOCK, vec![lines, now, json!(self.released.as_secs())]),
        ])
        .await
    }

    /// Places an order for one piece of a flash sale. Returns false and changes nothing if a constraint refuses: the
    /// order exists already, the user has bought a piece, all pieces are sold, or the sale has changed.
    ///
    /// # Errors
    /// Like [`OrderStore::place`].
    pub(in crate::demo) async fn place_flash(
        &self,
        id: &DemoOrderId,
        customer: &Customer<'_>,
        offer: &FlashOffer,
    ) -> Result<bool, Error> {
        let FlashOffer { card, sale_cents, starts, .. } = offer;
        let (item, order, now) = (json!(card.id), json!(id.0), json!(self.now.as_secs()));
        let line = json!(json!([{"item": card.id, "quantity": 1, "price_cents": sale_cents}]).to_string());
        let mut order_binds = self.order_binds(id, customer, *sale_cents, &card.currency);
        order_binds.push(Value::Null);
        let purchase = vec![item.clone(), json!(customer.user), order.clone(), json!(starts), json!(sale_cents)];
        self.commit(&[
            (INSERT_ORDER, order_binds),
            (INSERT_LINES, vec![order, line.clone()]),
            (COUNT_SOLD, vec![line]),
            self.save_address(customer),
            (INSERT_PURCHASE, purchase),
            (TAKE_PIECE, vec![item, now]),
        ])
        .await
    }

    /// True if an order has used the ticket.
    pub(in crate::demo) async fn has_used(&self, ticket: Option<&str>) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM orders WHERE checkout = ?1";
        Ok(!self.database.query(sql, &[json!(ticket)]).await?.is_empty())
    }

    /// True if `user` has bought a piece in this flash sale.
    pub(in crate::demo) async fn has_bought(&self, offer: &FlashOffer, user: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM flash_purchases WHERE item = ?1 AND sale_starts_at = ?2 AND user = ?3";
        Ok(!self.database.query(sql, &[json!(offer.card.id), json!(offer.starts), json!(user)]).await?.is_empty())
    }

    /// True if the order is for the flash sale of `item` that starts at `starts`, in Unix seconds.
    pub(in crate::demo) async fn is_flash(&self, id: &DemoOrderId, item: &ItemId, starts: u64) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM flash_purchases WHERE order_id = ?1 AND item = ?2 AND sale_starts_at = ?3";
        Ok(!self.database.query(sql, &[json!(id.0), json!(item.as_str()), json!(starts)]).await?.is_empty())
    }

    /// An order and its lines, read in one transaction; None if there is no such order.
    pub(in crate::demo) async fn find(
        &self,
        id: &DemoOrderId,
    ) -> Result<Option<(DemoOrder, Vec<DemoOrderLine>)>, Error> {
        let order = select_orders!("WHERE id = ?1");
        let lines = "SELECT item, name, quantity, order_lines.price_cents, picture, tone
            FROM order_lines JOIN products ON products.id = item WHERE order_id = ?1 ORDER BY products.name";
        let found = self.database.transaction(&[(order, vec![json!(id.0)]), (lines, vec![json!(id.0)])]).await?;
        let mut results = found.into_iter();
        let (orders, lines) = (results.next().unwrap_or_default(), results.next().unwrap_or_default());
        let Some(order) = deserialize_rows(orders)?.pop() else { return Ok(None) };
        Ok(Some((order, deserialize_rows(lines)?)))
    }

    /// The newest orders of `user`, at most 50.
    pub(in crate::demo) async fn find_by_user(&self, user: &str) -> Result<Vec<DemoOrder>, Error> {
        let sql = select_orders!("WHERE user = ?1 ORDER BY placed_at DESC LIMIT 50");
        deserialize_rows(self.database.query(sql, &[json!(user)]).await?)
    }

    fn save_address(&self, customer: &Customer<'_>) -> Statement<'static> {
        (SAVE_ADDRESS, vec![json!(customer.user), json!(customer.address), json!(self.now.as_millis())])
    }

    /// The parameters of [`INSERT_ORDER`] without the ticket.
    fn order_binds(&self, id: &DemoOrderId, customer: &Customer<'_>, total_cents: i64, currency: &str) -> Vec<Value> {
        let Customer { user, email, name, address } = customer;
        let (total, placed) = (json!(total_cents), json!(self.now.as_secs()));
        vec![json!(id.0), json!(user), json!(email), json!(name), json!(address), total, json!(currency), placed]
    }

    /// Runs a transaction; false if a constraint refuses it.
    async fn commit(&self, statements: &[Statement<'_>]) -> Result<bool, Error> {
        match self.database.transaction(statements).await {
            Ok(_) => Ok(true),
            Err(DatabaseError::Constraint(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
