//! Changes to a cart.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Quantity;
use crate::{
    config::CartConfig,
    ports::error::Error,
    schema::ids::{ItemId, id_text},
};

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

/// The changes of one `Edge-Cart`, in their order: at least 1, at most [`CartChanges::MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CartChanges(Vec<CartChange>);

/// The fields of an operation in JSON.
#[derive(Deserialize)]
struct ChangeFields {
    op: String,
    id: Option<Value>,
    #[serde(default)]
    quantity: Value,
}

const RULE: &str = "must be a JSON object with op, id and quantity, or a list of such objects";

impl CartChanges {
    /// The most operations: every line of a cart of the default size.
    pub const MAX: usize = 100;
    /// The longest text, in bytes. A hundred operations on ids of 64 characters take 11 KB.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Reads an operation `{"op": "add" | "set" | "clear", "id": "mug", "quantity": 2}`, or a list of operations.
    /// `clear` has no other fields.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first invalid field; in a list also with the number of its operation.
    pub fn parse(text: &str, config: &CartConfig) -> Result<Self, Error> {
        if text.len() > Self::MAX_BYTES {
            return Err(Error::invalid("change", format!("must have at most {} bytes", Self::MAX_BYTES)));
        }
        if !text.trim_start().starts_with('[') {
            return CartChange::parse(text, config).map(|change| Self(vec![change]));
        }
        // The first type accepts objects only; the second one refuses a repeated field.
        let operations = serde_json::from_str::<Vec<Map<String, Value>>>(text)
            .and_then(|_| serde_json::from_str::<Vec<ChangeFields>>(text))
            .map_err(|_| Error::invalid("change", RULE))?;
        if !(1..=Self::MAX).contains(&operations.len()) {
            return Err(Error::invalid("change", format!("must be a list of 1 to {} operations", Self::MAX)));
        }
        let numbered = |(number, fields)| {
            CartChange::from_fields(fields, *config).map_err(|error| match error {
                Error::Invalid { field, rule } => {
                    Error::Invalid { field, rule: format!("{rule} (operation {number})") }
                }
                other => other,
            })
        };
        (1..).zip(&operations).map(numbered).collect::<Result<_, _>>().map(Self)
    }

    /// The changes in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[CartChange] {
        &self.0
    }
}

impl CartChange {
    /// Reads one operation: see [`CartChanges::parse`].
    ///
    /// # Errors
    /// [`Error::Invalid`] with the invalid field.
    pub fn parse(text: &str, config: &CartConfig) -> Result<Self, Error> {
        let fields = serde_json::from_str(text).map_err(|_| Error::invalid("change", RULE))?;
        Self::from_fields(&fields, *config)
    }

    fn from_fields(fields: &ChangeFields, config: CartConfig) -> Result<Self, Error> {
        let line = || {
            let id = fields.id.as_ref().ok_or_else(|| Error::invalid("item", "is missing"))?;
            Ok((ItemId::parse(&id_text("item", id)?)?, Quantity::parse(&fields.quantity, config.max_quantity)?))
        };
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
        let two = Quantity::parse(&json!(2), CONFIG.max_quantity).unwrap();
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
            assert!(CartChanges::parse(text, &CONFIG).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_may_be_an_integer() {
        let change = CartChange::parse(r#"{"op":"add","id":42,"quantity":2}"#, &CONFIG).unwrap();
        assert!(matches!(change, CartChange::Add(item, _) if item.as_str() == "42"));
        for id in ["4.5", "1e30", "null", "[42]"] {
            let error = CartChange::parse(&format!(r#"{{"op":"add","id":{id},"quantity":2}}"#), &CONFIG).unwrap_err();
            assert!(error.to_string().starts_with("item "), "{error}");
        }
    }

    #[test]
    fn a_list_has_its_operations_in_order() {
        let one = r#"{"op":"add","id":"mug","quantity":2}"#;
        let parse = |text: &str| CartChanges::parse(text, &CONFIG);
        assert_eq!(parse(one), parse(&format!("[{one}]")));
        let text = format!(r#" [{{"op":"clear"}}, {one}, {{"op":"set","id":7,"quantity":0}}]"#);
        let changes = parse(&text).unwrap();
        assert!(
            matches!(changes.as_slice(), [CartChange::Clear, CartChange::Add(mug, _), CartChange::Set(seven, Quantity::ZERO)]
                if (mug.as_str(), seven.as_str()) == ("mug", "7"))
        );
        assert_eq!(parse(&format!("[{}]", vec![one; 100].join(","))).unwrap().as_slice().len(), 100);
    }

    #[test]
    fn one_invalid_operation_makes_the_list_invalid() {
        let one = r#"{"op":"add","id":"mug","quantity":2}"#;
        for (text, message) in [
            ("[]".to_owned(), "change must be a list of 1 to 100 operations"),
            (format!("[{}]", vec![one; 101].join(",")), "change must be a list of 1 to 100 operations"),
            (format!("[{one}{}]", " ".repeat(CartChanges::MAX_BYTES)), "change must have at most 16384 bytes"),
            (format!("[{one}"), "change must be a JSON object"),
            (format!("[{one},[]]"), "change must be a JSON object"),
            (r#"[["add","mug",2]]"#.to_owned(), "change must be a JSON object"),
            (r#"[{"op":"clear","op":"add"}]"#.to_owned(), "change must be a JSON object"),
            (format!("[{one},null]"), "change must be a JSON object"),
            (format!(r#"[{one},{{"op":"steal"}}]"#), "op must be add, set or clear (operation 2)"),
            (format!(r#"[{one},{{"op":"add"}}]"#), "item is missing (operation 2)"),
            (format!(r#"[{{"op":"add","id":1.5,"quantity":1}},{one}]"#), "item must be a string or an integer"),
        ] {
            let error = CartChanges::parse(&text, &CONFIG).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
