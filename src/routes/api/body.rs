//! A JSON body, field by field. Nothing in a body is ignored: a field that is unknown, or given twice, is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::{ports::error::Error, routes::problem::Problem};

/// The fields of a JSON object, to be taken one by one; [`Fields::end`] then refuses what is left.
#[derive(Debug, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Problem::Malformed`] if it is not one JSON object with each field once.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| Problem::Malformed(error.to_string()))
    }

    /// Takes a field that must be there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not.
    pub fn take(&mut self, field: &'static str) -> Result<Value, Error> {
        self.take_if_any(field).ok_or_else(|| Error::invalid(field, "is missing"))
    }

    /// Takes a field that may be there.
    pub fn take_if_any(&mut self, field: &str) -> Option<Value> {
        self.0.shift_remove(field)
    }

    /// All fields, for who takes several at once.
    pub const fn all(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// Takes a field that must be a string, and reads it with `parse`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is missing or no string, or that of `parse`, under this field's name.
    pub fn parse_text<T>(&mut self, field: &'static str, parse: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
        read_text(field, &self.take(field)?, parse)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a field which nobody took.
    pub fn end(self) -> Result<(), Error> {
        let Some((unknown, _)) = self.0.iter().next() else { return Ok(()) };
        // A name as long as the body would be a strange thing to read; 64 characters tell which it is.
        let unknown: String = unknown.chars().take(64).collect();
        Err(Error::invalid("body", format!("must not have the field {unknown:?}")))
    }
}

/// Reads a string with `parse`, whose error then carries the name that the field has for the caller.
///
/// # Errors
/// [`Error::Invalid`] if it is no string, or `parse` says so.
pub fn read_text<T>(field: &'static str, value: &Value, parse: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
    let text = value.as_str().ok_or_else(|| Error::invalid(field, "must be a string"))?;
    parse(text).map_err(|error| match error {
        Error::Invalid { rule, .. } => Error::Invalid { field, rule },
        other => other,
    })
}

/// As a map of JSON values, except that a second value for a field is an error instead of the winner.
impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> Visitor<'de> for Once {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format!("the field {name:?} is given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ids::ItemId;

    fn problem(body: &[u8]) -> String {
        let read = |mut fields: Fields| -> Result<ItemId, Error> {
            let id = fields.parse_text("id", ItemId::parse)?;
            fields.end().map(|()| id)
        };
        Fields::parse(body).and_then(|fields| Ok(read(fields)?)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_with_a_body_is_told() {
        for (body, told) in [
            (&b""[..], "not a JSON object: EOF"),
            (b"{", "not a JSON object: EOF"),
            (b"[]", "not a JSON object: invalid type"),
            (b"null", "not a JSON object: invalid type"),
            (b"{} {}", "trailing characters"),
            (b"{\"id\": \"\xff\"}", "not a JSON object"),
            (b"{\"id\": \"\\ud800\"}", "not a JSON object"),
            (br#"{"id": "a", "id": "b"}"#, r#"the field "id" is given twice"#),
            (b"{}", "id is missing"),
            (br#"{"id": 5}"#, "id must be a string"),
            (br#"{"id": "a:b"}"#, "id must be 1 to 64 characters"),
            (br#"{"id": "a", "pirce": 1}"#, r#"body must not have the field "pirce""#),
        ] {
            let problem = problem(body);
            assert!(problem.contains(told), "{problem}");
        }
        // serde_json stops at 128 levels: no body can exhaust the stack.
        assert!(problem("[".repeat(16_000).as_bytes()).contains("not a JSON object"));
        assert!(problem(format!("{{\"id\":{}", "[".repeat(15_000)).as_bytes()).contains("recursion"));
    }
}
