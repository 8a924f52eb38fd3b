//! A change to a cart.

use serde::Deserialize;
use serde_json::Value;

use super::Quantity;
use crate::{config::CartConfig, ports::error::Error, schema::ids::ItemId};

/// A change to a cart, from the API or from the origin's header `Edge-Cart`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CartChange {
    /// Adds to the quantity of an item, up to [`CartConfig::max_quantity`]. The added quantity is at least 1.
    Add(ItemId, Quantity),
    /// Sets the quantity of an item; 0 removes it.
    Set(ItemId, Quantity),
    /// Removes every item.
    Clear,
}

impl CartChange {
    /// Reads `{"op": "add" | "set" | "clear", "id": "mug", "quantity": 2}`. `clear` has no other fields.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the invalid field.
    pub fn parse(text: &str, config: &CartConfig) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct ChangeFields {
            op: String,
            #[serde(default)]
            id: String,
            #[serde(default)]
            quantity: Value,
        }
        let rule = "must be a JSON object with op, id and quantity";
        let fields: ChangeFields = serde_json::from_str(text).map_err(|_| Error::invalid("change", rule))?;
        let line = || Ok((ItemId::parse(&fields.id)?, Quantity::parse(&fields.quantity, config)?));
        match fields.op.as_str() {
            "clear" => Ok(Self::Clear),
            "set" => line().map(|(item, quantity)| Self::Set(item, quantity)),
            "add" => match line()? {
                (_, Quantity::ZERO) => Err(Error::invalid("quantity", "must be at least 1")),
                (item, quantity) => Ok(Self::Add(item, quantity)),
            },
            _ => Err(Error::invalid("op", "must be add, set or clear")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: CartConfig = CartConfig { max_lines: 100, max_quantity: 999 };

    #[test]
    fn a_change_names_an_operation_an_item_and_a_quantity() {
        let mug = || ItemId::parse("mug").unwrap();
        let two = Quantity::parse(&json!(2), &CONFIG).unwrap();
        for (text, change) in [
            (r#"{"op":"add","id":"mug","quantity":2}"#, CartChange::Add(mug(), two)),
            (r#"{"op":"set","id":"mug","quantity":0}"#, CartChange::Set(mug(), Quantity::ZERO)),
            (r#"{"op":"clear"}"#, CartChange::Clear),
        ] {
            assert_eq!(CartChange::parse(text, &CONFIG), Ok(change));
        }
    }

    #[test]
    fn an_invalid_change_is_refused() {
        for text in [
            "",
            "mug",
            "[]",
            r#"{"op":"steal","id":"mug","quantity":2}"#,
            r#"{"op":"add","id":"mug","quantity":0}"#,
            r#"{"op":"add","id":"mug"}"#,
            r#"{"op":"set","id":"a:b","quantity":1}"#,
            r#"{"op":"set","quantity":1}"#,
            r#"{"op":"set","id":"mug","quantity":1000}"#,
        ] {
            assert!(CartChange::parse(text, &CONFIG).is_err(), "{text}");
        }
    }
}
