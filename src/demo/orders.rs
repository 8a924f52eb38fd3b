//! Orders in D1. An order, its lines and what they take from the stock are one transaction: either all of it happened, or
//! nothing. That the stock never goes below zero is the schema's to refuse, however many buy at once.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    basket::Basket,
    catalogue::{self, Offer, promised_pieces},
    pages::Money,
    visitor::Held,
};
use crate::{
    ports::{
        database::{Database, DatabaseError, Statement},
        error::Error,
        random,
        time::Timestamp,
    },
    schema::{hex, ids::ItemId},
};

/// The orders as they are at one moment.
pub(super) struct Orders<'a> {
    pub database: &'a dyn Database,
    pub now: Timestamp,
}

/// An order's number: 128 random bits, drawn with the form that it is sent by, as 32 hexadecimal digits. Nobody guesses it, so
/// whoever knows a guest's number is that guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderId(String);

/// For whom an order is.
pub(super) struct Buyer<'a> {
    /// None for a guest.
    pub user: Option<&'a str>,
    pub mail: &'a str,
    pub name: &'a str,
    pub address: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Order {
    pub id: String,
    pub user: Option<String>,
    pub mail: String,
    pub name: String,
    pub address: String,
    pub total_cents: i64,
    pub currency: String,
    pub placed_at: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct OrderLine {
    pub item: String,
    pub name: String,
    pub quantity: u32,
    /// The price of one piece.
    pub price_cents: i64,
    pub picture: String,
    pub tone: String,
}

impl OrderId {
    /// # Errors
    /// [`Error::Platform`] if the platform has no random bits.
    pub(super) fn draw() -> Result<Self, Error> {
        Ok(Self(hex(&random::bytes::<16>()?)))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == 32 && is_hex).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

const INSERT_ORDER: &str = "INSERT INTO orders (id, user, mail, name, address, total_cents, currency, placed_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
/// One parameter carries all lines: a hundred statements would be more than a Worker may send on the Free plan.
const INSERT_LINES: &str = "INSERT INTO order_lines (order_id, item, quantity, price_cents)
    SELECT ?1, value ->> 'item', value ->> 'quantity', value ->> 'price_cents' FROM json_each(?2)";
/// Less than what a flash sale still promises is like less than nothing, which the schema refuses.
const TAKE_STOCK: &str = concat!(
    "UPDATE inventory SET updated_at = ?2, stock = CASE WHEN stock - (line.value ->> 'quantity') < ",
    promised_pieces!("?2"),
    " THEN -1 ELSE stock - (line.value ->> 'quantity') END
    FROM json_each(?1) AS line WHERE inventory.id = line.value ->> 'item'"
);

/// One for each user, by the table's key. A sale or a price that is not what the buyer was shown is NULL here, which the schema refuses.
const INSERT_PURCHASE: &str = "INSERT INTO flash_purchases (item, user, order_id, sale_starts_at) VALUES (?1, ?2, ?3,
    (SELECT sale_starts_at FROM inventory WHERE id = ?1 AND sale_pieces > 0 AND sale_starts_at = ?4 AND sale_price_cents = ?5))";
const TAKE_PIECE: &str =
    "UPDATE inventory SET sale_sold = sale_sold + 1, stock = stock - 1, updated_at = ?2 WHERE id = ?1";

impl Orders<'_> {
    /// Writes an order for what is in `basket`, at the prices that it shows. False if a constraint says no: there is such an
    /// order already, or something is out of stock; nothing was done then.
    ///
    /// # Errors
    /// [`Error::Database`] if the database is out of reach: it may have been done, and to try again with this `id` is safe.
    pub(super) async fn place(&self, id: &OrderId, buyer: &Buyer<'_>, basket: &Basket) -> Result<bool, Error> {
        let lines = basket.lines.iter().filter_map(|line| {
            let price = line.card.as_ref()?.price_cents;
            Some(json!({"item": line.id, "quantity": line.quantity, "price_cents": price}))
        });
        let lines = json!(lines.collect::<Value>().to_string());
        let now = json!(self.now.as_secs());
        self.write(&[
            (INSERT_ORDER, self.order(id, buyer, basket.total_cents(), basket.currency())),
            (INSERT_LINES, vec![json!(id.0), lines.clone()]),
            (TAKE_STOCK, vec![lines, now]),
        ])
        .await
    }

    /// Writes an order for one piece of a flash sale. False if a constraint says no: there is such an order already, the user has bought
    /// one, all pieces are sold, or the sale is another one by now; nothing was done then.
    ///
    /// # Errors
    /// As [`Orders::place`].
    pub(super) async fn place_flash(&self, id: &OrderId, buyer: &Buyer<'_>, offer: &Offer) -> Result<bool, Error> {
        let Offer { card, sale_cents, starts, .. } = offer;
        let (item, order, now) = (json!(card.id), json!(id.0), json!(self.now.as_secs()));
        let line = json!(json!([{"item": card.id, "quantity": 1, "price_cents": sale_cents}]).to_string());
        let purchase = vec![item.clone(), json!(buyer.user), order.clone(), json!(starts), json!(sale_cents)];
        self.write(&[
            (INSERT_ORDER, self.order(id, buyer, *sale_cents, &card.currency)),
            (INSERT_LINES, vec![order, line]),
            (INSERT_PURCHASE, purchase),
            (TAKE_PIECE, vec![item, now]),
        ])
        .await
    }

    /// Returns whether `user` has bought a piece in this sale.
    pub(super) async fn has_bought(&self, offer: &Offer, user: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM flash_purchases WHERE item = ?1 AND sale_starts_at = ?2 AND user = ?3";
        Ok(!self.database.query(sql, &[json!(offer.card.id), json!(offer.starts), json!(user)]).await?.is_empty())
    }

    /// Returns whether an order is one of a flash sale of `item`.
    pub(super) async fn is_flash(&self, id: &OrderId, item: &ItemId) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM flash_purchases WHERE order_id = ?1 AND item = ?2";
        Ok(!self.database.query(sql, &[json!(id.0), json!(item.as_str())]).await?.is_empty())
    }

    /// The parameters of [`INSERT_ORDER`].
    fn order(&self, id: &OrderId, buyer: &Buyer<'_>, total_cents: i64, currency: &str) -> Vec<Value> {
        let Buyer { user, mail, name, address } = buyer;
        let (total, placed) = (json!(total_cents), json!(self.now.as_secs()));
        vec![json!(id.0), json!(user), json!(mail), json!(name), json!(address), total, json!(currency), placed]
    }

    /// Returns whether the database did it; if not, a constraint says no.
    async fn write(&self, statements: &[Statement<'_>]) -> Result<bool, Error> {
        match self.database.transaction(statements).await {
            Ok(_) => Ok(true),
            Err(DatabaseError::Constraint(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// An order and its lines; None if there is no such order. Both reads are of one moment.
    pub(super) async fn find(&self, id: &OrderId) -> Result<Option<(Order, Vec<OrderLine>)>, Error> {
        let order = "SELECT id, user, mail, name, address, total_cents, currency, placed_at FROM orders WHERE id = ?1";
        let lines = "SELECT item, name, quantity, order_lines.price_cents, picture, tone
            FROM order_lines JOIN products ON products.id = item WHERE order_id = ?1 ORDER BY products.name";
        let found = self.database.transaction(&[(order, vec![json!(id.0)]), (lines, vec![json!(id.0)])]).await?;
        let mut results = found.into_iter();
        let (orders, lines) = (results.next().unwrap_or_default(), results.next().unwrap_or_default());
        let Some(order) = catalogue::read(orders)?.pop() else { return Ok(None) };
        Ok(Some((order, catalogue::read(lines)?)))
    }

    /// The newest orders of `user`, at most 50.
    pub(super) async fn of_user(&self, user: &str) -> Result<Vec<Order>, Error> {
        let sql = "SELECT id, user, mail, name, address, total_cents, currency, placed_at FROM orders
            WHERE user = ?1 ORDER BY placed_at DESC LIMIT 50";
        catalogue::read(self.database.query(sql, &[json!(user)]).await?)
    }
}

/// How long after the purchase a user's order shows to whoever knows its number, in seconds: the buyer must see it even if Redis
/// does not say who they are at that moment.
const AFTERGLOW: u64 = 900;

impl Order {
    /// A guest's order is visible to everybody with its number; a user's order only to that user.
    pub(super) fn belongs_to(&self, user: Option<&str>, now: Timestamp) -> bool {
        match self.user.as_deref() {
            None => true,
            Some(owner) => user == Some(owner) || now.as_secs() < self.placed_at + AFTERGLOW,
        }
    }

    pub(super) fn total(&self) -> Money<'_> {
        Money { cents: self.total_cents, currency: &self.currency }
    }

    /// `21 Nov 2026`.
    pub(super) fn date(&self) -> String {
        // The formatter ends with the year 9999.
        let placed = std::time::UNIX_EPOCH + std::time::Duration::from_secs(self.placed_at.min(253_402_300_799));
        // `Sat, 21 Nov 2026 18:12:05 GMT`
        httpdate::fmt_http_date(placed).get(5..16).unwrap_or_default().to_owned()
    }

    /// The number as people name it: its first eight digits.
    pub(super) fn number(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }

    /// What the edge is told: `{"order_id", "items": [{"id", "quantity"}]}`, and `"reservation": {"sale", "id"}` of a piece that was
    /// `held`.
    pub(super) fn for_edge(&self, lines: &[OrderLine], held: Option<&Held>) -> Value {
        let items: Vec<_> = lines.iter().map(|line| json!({"id": line.item, "quantity": line.quantity})).collect();
        match held {
            None => json!({"order_id": self.id, "items": items}),
            Some(Held { sale, id, .. }) => {
                json!({"order_id": self.id, "items": items, "reservation": {"sale": sale, "id": id}})
            }
        }
    }
}

impl OrderLine {
    /// The price of all pieces.
    pub(super) fn price<'a>(&self, order: &'a Order) -> Money<'a> {
        Money { cents: self.price_cents * i64::from(self.quantity), currency: &order.currency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(user: Option<&str>) -> Order {
        let text = str::to_owned;
        Order {
            id: "0".repeat(32),
            user: user.map(text),
            mail: text("ada@example.org"),
            name: text("Ada"),
            address: text("Here"),
            total_cents: 2100,
            currency: text("EUR"),
            placed_at: 1_795_284_725,
        }
    }

    #[test]
    fn an_order_shows_to_whom_it_belongs() {
        let (now, later) = (Timestamp::from_millis(1_795_284_726_000), Timestamp::from_millis(1_795_286_000_000));
        for user in [None, Some("eve"), Some("ada")] {
            assert!(order(None).belongs_to(user, later), "the number is the key to a guest's order");
            assert!(order(Some("ada")).belongs_to(user, now), "right after the purchase");
            assert_eq!(order(Some("ada")).belongs_to(user, later), user == Some("ada"));
        }
    }

    #[test]
    fn the_edge_is_told_what_was_bought() {
        let line = |item: &str, quantity| {
            serde_json::from_value::<OrderLine>(json!({"item": item, "name": "", "quantity": quantity,
                "price_cents": 1, "picture": "mug", "tone": "sage"}))
            .unwrap()
        };
        let told = order(None).for_edge(&[line("mug", 2), line("pan", 1)], None);
        let items = json!([{"id": "mug", "quantity": 2}, {"id": "pan", "quantity": 1}]);
        assert_eq!(told, json!({"order_id": "0".repeat(32), "items": items}));
        assert_eq!(order(None).date(), "21 Nov 2026");
    }

    #[test]
    fn a_number_is_drawn_and_read_back() {
        let id = OrderId::draw().unwrap();
        assert_eq!(OrderId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(OrderId::draw().unwrap(), id);
        for text in ["", "1", &"A".repeat(32), &"g".repeat(32), &"0".repeat(33), "../../../../../../../../../../.."] {
            assert_eq!(OrderId::parse(text), None, "{text}");
        }
    }
}
