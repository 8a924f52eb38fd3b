//! Orders, as the storefront reports them: at its answer to a visitor (`Edge-Order`), or later by the API. What follows from one
//! happens once for each order id, so a report may be repeated: by our own retry after a lost reply, by a visitor who reloads the
//! page that thanks them, by a queue of the shop.

pub mod flash_sale;
pub mod insights;

use serde_json::{Map, Value};

use crate::schema::scripts::BUY;
use crate::{
    carts::{CartLine, Quantity},
    config::{CartConfig, SessionConfig},
    orders::flash_sale::ReservationId,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{ItemId, OrderId, RowId, UserId},
        keys::{Keys, ORDER_TTL},
        shard::Shard,
        token::Token,
    },
    sessions,
    upstash::{Command, FromReply, Redis},
};

/// How many different items an order may have: as many as a cart by default.
const MOST_LINES: usize = 100;

/// What somebody bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    /// At least one; each item once, in the order of the report.
    pub lines: Vec<CartLine>,
    /// The piece of a flash sale that was bought with it.
    pub reservation: Option<OrderedReservation>,
}

/// A piece of a flash sale that was held for the visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedReservation {
    pub sale: RowId,
    pub id: ReservationId,
}

impl Order {
    /// Reads the header `Edge-Order`: `{"order_id": …, "items": [{"id": …, "quantity": …}], "reservation"?: {"sale": …, "id": …}}`.
    /// What else stands in it is left out.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field that is wrong.
    pub fn parse(text: &str, config: &CartConfig) -> Result<Self, Error> {
        let mut fields = serde_json::from_str(text).map_err(|_| Error::invalid("order", "must be a JSON object"))?;
        Self::take(&mut fields, config)
    }

    /// Takes an order's fields out of `fields`. Lines of the same item become one.
    ///
    /// # Errors
    /// As [`Order::parse`].
    pub fn take(fields: &mut Map<String, Value>, config: &CartConfig) -> Result<Self, Error> {
        let id = OrderId::parse(text("order_id", fields.shift_remove("order_id").as_ref())?)?;
        let items = fields.shift_remove("items");
        let items = items.as_ref().and_then(Value::as_array).filter(|items| (1..=MOST_LINES).contains(&items.len()));
        let items =
            items.ok_or_else(|| Error::invalid("items", format!("must be a list of 1 to {MOST_LINES} items")))?;
        let mut lines = Vec::<CartLine>::with_capacity(items.len());
        for fields in items {
            let item = ItemId::parse(text("item", fields.get("id"))?)?;
            let quantity = Quantity::parse(fields.get("quantity").unwrap_or(&Value::Null), config)?.get();
            if quantity == 0 {
                return Err(Error::invalid("quantity", "must be at least 1"));
            }
            match lines.iter_mut().find(|line| line.item == item) {
                Some(line) => line.quantity = line.quantity.saturating_add(quantity),
                None => lines.push(CartLine { item, quantity }),
            }
        }
        let reservation = fields.shift_remove("reservation").filter(|reservation| !reservation.is_null());
        let reservation = reservation.as_ref().map(OrderedReservation::read).transpose()?;
        Ok(Self { id, lines, reservation })
    }
}

impl OrderedReservation {
    fn read(fields: &Value) -> Result<Self, Error> {
        let wrong = || Error::invalid("reservation", "must be an object with the sale and the id of a reservation");
        let part = |name| text("reservation", fields.get(name)).map_err(|_| wrong());
        let sale = RowId::parse(part("sale")?).map_err(|_| wrong())?;
        let id = ReservationId::parse(part("id")?).ok_or_else(wrong)?;
        Ok(Self { sale, id })
    }
}

fn text<'a>(field: &'static str, value: Option<&'a Value>) -> Result<&'a str, Error> {
    let value = value.ok_or_else(|| Error::invalid(field, "is missing"))?;
    value.as_str().ok_or_else(|| Error::invalid(field, "must be a string"))
}

/// Does what must be so when the visitor looks next: what was bought is no longer in the cart of `token`, and the piece that was
/// held is sold to `user` (if that is None, to whose session it is). Returns the items that this session viewed last, newest first,
/// for the insights.
///
/// One request, and none for a visitor without a session: the parts do not depend on each other, so they share a pipeline. What stays
/// in a cart depends on what is in it, and what a sale does with an order on the hold, so these are scripts. All may be repeated after
/// a lost reply. Only where a piece was bought and nobody knows by whom, it takes another request; and one in the sharded layout.
///
/// # Errors
/// [`Error::Redis`]; what was done until then stays done, and the same call again does the rest.
pub async fn settle(
    redis: &Redis,
    order: &Order,
    token: Option<&Token>,
    user: Option<&UserId>,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Vec<ItemId>, Error> {
    let mut commands = Vec::new();
    if let Some(token) = token {
        commands.push(sessions::viewed_command(redis.keys(), token));
        if is_of_shard(redis, order, redis.keys().shard_of(token)).await? {
            commands.push(buy(redis.keys(), order, token));
        }
    }
    if let Some(OrderedReservation { sale, id }) = &order.reservation {
        let user = match (user, token) {
            (None, Some(token)) => sessions::check(redis, token, now, config).await?.and_then(|session| session.user),
            _ => user.cloned(),
        };
        match user {
            Some(user) => commands.push(flash_sale::confirm(redis.keys(), sale, id, &user, &order.id)),
            None => log::error!("an order of nobody names a reservation: it is not confirmed"),
        }
    }
    let replies = redis.pipeline(&commands).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let viewed = replies.into_iter().next().filter(|_| token.is_some());
    let viewed = viewed.map(Vec::<String>::from_reply).transpose()?.unwrap_or_default();
    Ok(sessions::viewed_items(&viewed))
}

/// Whether the order's cart is one of `shard`. Each shard notes for itself which orders were taken out of its carts; so that
/// two reports of one order with two sessions do it once, the shard of the first one is noted with the order. One request, and none in
/// the book's layout.
async fn is_of_shard(redis: &Redis, order: &Order, shard: Shard) -> Result<bool, Error> {
    if !redis.keys().is_sharded() {
        return Ok(true);
    }
    let key = redis.keys().order(&order.id);
    let note = Command::write("HSETNX").arg(&key).arg("shard").num(shard.number()).repeatable();
    let noted = Command::read("HGET").arg(&key).arg("shard");
    let expire = Command::write("EXPIRE").arg(&key).num(ORDER_TTL).repeatable();
    let ((), noted, ()): ((), u32, ()) = redis.all(&[note, noted, expire]).await?;
    Ok(noted == u32::from(shard.number()))
}

/// Takes what was bought out of the cart. No session is needed: where none lives, there is no cart.
fn buy(keys: Keys, order: &Order, token: &Token) -> Command {
    let shard = keys.shard_of(token);
    let buy = Command::script(&BUY, [shard.cart(token), shard.cart_order(&order.id)]).num(ORDER_TTL);
    let lines = order.lines.iter();
    lines.fold(buy, |buy, line| buy.arg(line.item.as_str()).num(line.quantity)).repeatable()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CartConfig = CartConfig { max_lines: 100, max_quantity: 999 };

    fn problem(text: &str) -> String {
        Order::parse(text, &CONFIG).unwrap_err().to_string()
    }

    #[test]
    fn an_order_has_each_item_once() {
        let text = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2},{"id":"pan","quantity":1},{"id":"mug","quantity":3}],"total":12}"#;
        let order = Order::parse(text, &CONFIG).unwrap();
        let lines: Vec<_> = order.lines.iter().map(|line| (line.item.as_str(), line.quantity)).collect();
        assert_eq!((order.id.as_str(), &*lines, order.reservation), ("A-1", &[("mug", 5), ("pan", 1)][..], None));
    }

    #[test]
    fn an_order_may_buy_a_piece_that_was_held() {
        let items = r#""items":[{"id":"mug","quantity":1}]"#;
        let held = |held: &str| Order::parse(&format!(r#"{{"order_id":"1",{items},"reservation":{held}}}"#), &CONFIG);
        let id = "1790000000.bTcyZTNiM2Y4YWI3NDkxOQ";
        let reserved = held(&format!(r#"{{"sale":"mug","id":"{id}"}}"#)).unwrap().reservation.unwrap();
        assert_eq!((reserved.sale.as_str(), reserved.id.as_str()), ("mug", id));
        assert_eq!(held("null").unwrap().reservation, None);
        for wrong in ["{}", "7", r#"{"sale":"mug"}"#, r#"{"sale":"a:b","id":"x"}"#, r#"{"sale":"mug","id":"a b"}"#] {
            assert!(held(wrong).unwrap_err().to_string().starts_with("reservation must be"), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_order_is_told() {
        for (text, told) in [
            ("", "order must be a JSON object"),
            ("[]", "order must be a JSON object"),
            ("{}", "order_id is missing"),
            (r#"{"order_id":7}"#, "order_id must be a string"),
            (r#"{"order_id":"a b"}"#, "order_id must be 1 to 64 characters"),
            (r#"{"order_id":"1"}"#, "items must be a list of 1 to 100 items"),
            (r#"{"order_id":"1","items":[]}"#, "items must be a list of 1 to 100 items"),
            (r#"{"order_id":"1","items":["mug"]}"#, "item is missing"),
            (r#"{"order_id":"1","items":[{"id":"a:b"}]}"#, "item must be 1 to 64 characters"),
            (r#"{"order_id":"1","items":[{"id":"mug"}]}"#, "quantity must be a whole number"),
            (r#"{"order_id":"1","items":[{"id":"mug","quantity":0}]}"#, "quantity must be at least 1"),
            (r#"{"order_id":"1","items":[{"id":"mug","quantity":1000}]}"#, "quantity must be at most 999"),
        ] {
            assert!(problem(text).starts_with(told), "{text}: {}", problem(text));
        }
        let lines = vec![r#"{"id":"mug","quantity":1}"#; 101].join(",");
        assert!(problem(&format!(r#"{{"order_id":"1","items":[{lines}]}}"#)).contains("1 to 100"));
    }
}
