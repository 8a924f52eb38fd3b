//! Orders that the storefront reports: in a response (`Edge-Order`), or later through the API. Reports are idempotent:
//! each effect happens once per order id. So edgefront may retry after a lost reply, a visitor may reload the thank-you
//! page, and a queue of the shop may deliver a report twice.
//!
//! - [`Order`]: one report, parsed.
//! - [`Order::settle`]: removes the bought items from the cart and confirms the reservation.
//! - [`flash_sale`]: limited pieces, each reserved for some minutes.
//! - [`insights`]: items that are bought together, and items that are bought after a view.

pub mod flash_sale;
pub mod insights;

mod settle;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use settle::Customer;

use crate::{
    carts::{CartLine, Quantity},
    orders::flash_sale::ReservationId,
    ports::error::Error,
    schema::ids::{ItemId, OrderId, RowId, id_text},
};

/// Most entries of `items` in a report, so that the script stays short. The limits of carts do not apply: the storefront has accepted
/// the order.
const MAX_LINES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    /// At least one line; each item once, in the order of the report.
    pub lines: Vec<CartLine>,
    /// False: the items were not in the cart, such as a piece of a flash sale, so the cart keeps such items.
    pub in_cart: bool,
    /// The flash-sale reservation that this order buys.
    pub reservation: Option<OrderedReservation>,
}

/// The reservation that an order names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedReservation {
    pub sale: RowId,
    pub id: ReservationId,
}

impl Order {
    /// Parses the header `Edge-Order`: `{"order_id": …, "items": [{"id": …, "quantity": …}], "in_cart"?: bool,
    /// "reservation"?: {"sale": …, "id": …}}`. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first invalid field.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut fields = serde_json::from_str(text).map_err(|_| Error::invalid("order", "must be a JSON object"))?;
        Self::take_from(&mut fields)
    }

    /// Removes the order's fields from `fields` and parses them. Lines of the same item are added up.
    ///
    /// # Errors
    /// As [`Order::parse`].
    pub fn take_from(fields: &mut Map<String, Value>) -> Result<Self, Error> {
        let id = OrderId::parse(&id_field("order_id", fields.shift_remove("order_id").as_ref())?)?;
        let items = fields.shift_remove("items");
        let items = items.as_ref().and_then(Value::as_array).filter(|items| (1..=MAX_LINES).contains(&items.len()));
        let items =
            items.ok_or_else(|| Error::invalid("items", format!("must be a list of 1 to {MAX_LINES} items")))?;
        let mut lines = Vec::<CartLine>::with_capacity(items.len());
        for fields in items {
            let item = ItemId::parse(&id_field("item", fields.get("id"))?)?;
            let quantity = Quantity::parse(fields.get("quantity").unwrap_or(&Value::Null), u32::MAX)?.get();
            if quantity == 0 {
                return Err(Error::invalid("quantity", "must be at least 1"));
            }
            match lines.iter_mut().find(|line| line.item == item) {
                Some(line) => line.quantity = line.quantity.saturating_add(quantity),
                None => lines.push(CartLine { item, quantity }),
            }
        }
        let in_cart = match fields.shift_remove("in_cart") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(in_cart)) => in_cart,
            Some(_) => return Err(Error::invalid("in_cart", "must be true or false")),
        };
        let reservation = fields.shift_remove("reservation").filter(|reservation| !reservation.is_null());
        let reservation = reservation.as_ref().map(OrderedReservation::parse).transpose()?;
        Ok(Self { id, lines, in_cart, reservation })
    }
}

impl OrderedReservation {
    fn parse(fields: &Value) -> Result<Self, Error> {
        let invalid = || Error::invalid("reservation", "must be an object with the sale and the id of a reservation");
        let sale = id_field("reservation", fields.get("sale")).and_then(|sale| RowId::parse(&sale));
        let sale = sale.map_err(|_| invalid())?;
        let id = fields.get("id").and_then(Value::as_str).and_then(ReservationId::parse).ok_or_else(invalid)?;
        Ok(Self { sale, id })
    }
}

/// The text of the id in `value`. Errors name `field`.
fn id_field<'a>(field: &'static str, value: Option<&'a Value>) -> Result<Cow<'a, str>, Error> {
    id_text(field, value.ok_or_else(|| Error::invalid(field, "is missing"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error(text: &str) -> String {
        Order::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn lines_of_the_same_item_are_added_up() {
        let text = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2},{"id":"pan","quantity":1},{"id":"mug","quantity":3}],"total":12}"#;
        let order = Order::parse(text).unwrap();
        let lines: Vec<_> = order.lines.iter().map(|line| (line.item.as_str(), line.quantity)).collect();
        assert_eq!((order.id.as_str(), &*lines, order.reservation), ("A-1", &[("mug", 5), ("pan", 1)][..], None));
    }

    #[test]
    fn ids_may_be_integers() {
        let order = Order::parse(r#"{"order_id":1001,"items":[{"id":42,"quantity":2},{"id":"42","quantity":1}]}"#);
        let order = order.unwrap();
        let lines: Vec<_> = order.lines.iter().map(|line| (line.item.as_str(), line.quantity)).collect();
        assert_eq!((order.id.as_str(), &*lines), ("1001", &[("42", 3)][..]));
    }

    #[test]
    fn items_come_from_the_cart_unless_the_order_denies_it() {
        for (field, in_cart) in
            [("", true), (r#","in_cart":null"#, true), (r#","in_cart":true"#, true), (r#","in_cart":false"#, false)]
        {
            let text = format!(r#"{{"order_id":"1","items":[{{"id":"mug","quantity":1}}]{field}}}"#);
            assert_eq!(Order::parse(&text).unwrap().in_cart, in_cart, "{text}");
        }
        let invalid = r#"{"order_id":"1","items":[{"id":"mug","quantity":1}],"in_cart":0}"#;
        assert_eq!(parse_error(invalid), "in_cart must be true or false");
    }

    #[test]
    fn an_order_may_name_a_reservation() {
        let items = r#""items":[{"id":"mug","quantity":1}]"#;
        let parse =
            |reservation: &str| Order::parse(&format!(r#"{{"order_id":"1",{items},"reservation":{reservation}}}"#));
        let id = "1790000000.bTcyZTNiM2Y4YWI3NDkxOQ";
        let reserved = parse(&format!(r#"{{"sale":"mug","id":"{id}"}}"#)).unwrap().reservation.unwrap();
        assert_eq!((reserved.sale.as_str(), reserved.id.as_str()), ("mug", id));
        let reserved = parse(&format!(r#"{{"sale":42,"id":"{id}"}}"#)).unwrap().reservation.unwrap();
        assert_eq!(reserved.sale.as_str(), "42");
        assert_eq!(parse("null").unwrap().reservation, None);
        for invalid in ["{}", "7", r#"{"sale":"mug"}"#, r#"{"sale":"a:b","id":"x"}"#, r#"{"sale":"mug","id":"a b"}"#] {
            assert!(parse(invalid).unwrap_err().to_string().starts_with("reservation must be"), "{invalid}");
        }
    }

    #[test]
    fn the_error_names_the_invalid_field() {
        for (text, message) in [
            ("", "order must be a JSON object"),
            ("[]", "order must be a JSON object"),
            ("{}", "order_id is missing"),
            (r#"{"order_id":7.5}"#, "order_id must be a string or an integer"),
            (r#"{"order_id":"a b"}"#, "order_id must be 1 to 64 characters"),
            (r#"{"order_id":"1"}"#, "items must be a list of 1 to 500 items"),
            (r#"{"order_id":"1","items":[]}"#, "items must be a list of 1 to 500 items"),
            (r#"{"order_id":"1","items":["mug"]}"#, "item is missing"),
            (r#"{"order_id":"1","items":[{"id":"a:b"}]}"#, "item must be 1 to 64 characters"),
            (r#"{"order_id":"1","items":[{"id":"mug"}]}"#, "quantity must be a whole number"),
            (r#"{"order_id":"1","items":[{"id":"mug","quantity":0}]}"#, "quantity must be at least 1"),
            (r#"{"order_id":"1","items":[{"id":"mug","quantity":4294967296}]}"#, "quantity must be at most 4294967295"),
        ] {
            assert!(parse_error(text).starts_with(message), "{text}: {}", parse_error(text));
        }
        let lines = vec![r#"{"id":"mug","quantity":1}"#; 501].join(",");
        assert!(parse_error(&format!(r#"{{"order_id":"1","items":[{lines}]}}"#)).contains("1 to 500"));
    }
}
