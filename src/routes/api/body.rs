//! A JSON body, field by field. Nothing in a body is ignored: an unknown or repeated field is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::{ports::error::Error, routes::problem::Problem, schema::ids::id_text};

/// The fields of a JSON object. A handler takes them one by one; [`JsonFields::finish`] then refuses the rest.
#[derive(Debug, PartialEq)]
pub struct JsonFields(Map<String, Value>);

impl JsonFields {
    /// Parses a body.
    ///
    /// # Errors
    /// [`Problem::MalformedJson`] if it is not one JSON object without repeated fields.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| Problem::MalformedJson(error.to_string()))
    }

    /// Takes a required field.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is missing.
    pub fn take(&mut self, field: &'static str) -> Result<Value, Error> {
        self.take_optional(field).ok_or_else(|| Error::invalid(field, "is missing"))
    }

    pub fn take_optional(&mut self, field: &str) -> Option<Value> {
        self.0.shift_remove(field)
    }

    /// Takes a required id, a string or an integer, and parses it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with this field's name if it is missing or no id, or if `parse` fails so.
    pub fn take_id<T>(&mut self, field: &'static str, parse: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
        parse_id(field, &self.take(field)?, parse)
    }

    /// Takes a required string and parses it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with this field's name if it is missing or no string, or if `parse` fails so.
    pub fn take_parsed<T>(
        &mut self,
        field: &'static str,
        parse: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<T, Error> {
        parse_string(field, &self.take(field)?, parse)
    }

    /// Takes an optional string and parses it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with this field's name if it is no string, or if `parse` fails so.
    pub fn take_optional_parsed<T>(
        &mut self,
        field: &'static str,
        parse: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.take_optional(field).map(|value| parse_string(field, &value, parse)).transpose()
    }

    /// All remaining fields, for a domain type that takes several fields itself.
    pub const fn remaining(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// Checks that no field is left.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of an unknown field.
    pub fn finish(self) -> Result<(), Error> {
        let Some((unknown, _)) = self.0.iter().next() else { return Ok(()) };
        // A name may be as long as the body; 64 characters identify it.
        let unknown: String = unknown.chars().take(64).collect();
        Err(Error::invalid("body", format!("must not have the field {unknown:?}")))
    }
}

/// Parses a string. An error of `parse` then names `field`.
///
/// # Errors
/// [`Error::Invalid`] if `value` is no string, or if `parse` fails so.
pub fn parse_string<T>(
    field: &'static str,
    value: &Value,
    parse: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, Error> {
    let text = value.as_str().ok_or_else(|| Error::invalid(field, "must be a string"))?;
    parse(text).map_err(|error| with_field(error, field))
}

/// Parses an id, a string or an integer. An error of `parse` then names `field`.
///
/// # Errors
/// [`Error::Invalid`] if `value` is no id, or if `parse` fails so.
pub fn parse_id<T>(field: &'static str, value: &Value, parse: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
    parse(&id_text(field, value)?).map_err(|error| with_field(error, field))
}

fn with_field(error: Error, field: &'static str) -> Error {
    match error {
        Error::Invalid { rule, .. } => Error::Invalid { field, rule },
        other => other,
    }
}

/// Reads a map of JSON values. `serde_json` would let the last of repeated fields win; here it is an error.
impl<'de> Deserialize<'de> for JsonFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UniqueFields;

        impl<'de> Visitor<'de> for UniqueFields {
            type Value = JsonFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format!("the field {name:?} is given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(JsonFields(fields))
            }
        }

        deserializer.deserialize_map(UniqueFields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ids::ItemId;

    fn problem(body: &[u8]) -> String {
        let read = |mut fields: JsonFields| -> Result<ItemId, Error> {
            let id = fields.take_id("id", ItemId::parse)?;
            fields.finish().map(|()| id)
        };
        JsonFields::parse(body).and_then(|fields| Ok(read(fields)?)).unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_body_is_explained() {
        for (body, message) in [
            (&b""[..], "not a JSON object: EOF"),
            (b"{", "not a JSON object: EOF"),
            (b"[]", "not a JSON object: invalid type"),
            (b"null", "not a JSON object: invalid type"),
            (b"{} {}", "trailing characters"),
            (b"{\"id\": \"\xff\"}", "not a JSON object"),
            (b"{\"id\": \"\\ud800\"}", "not a JSON object"),
            (br#"{"id": "a", "id": "b"}"#, r#"the field "id" is given twice"#),
            (b"{}", "id is missing"),
            (br#"{"id": 5.5}"#, "id must be a string or an integer"),
            (br#"{"id": null}"#, "id must be a string or an integer"),
            (br#"{"id": "a:b"}"#, "id must be 1 to 64 characters"),
            (br#"{"id": "a", "pirce": 1}"#, r#"body must not have the field "pirce""#),
        ] {
            let problem = problem(body);
            assert!(problem.contains(message), "{problem}");
        }
        // serde_json stops at 128 levels: no body can exhaust the stack.
        assert!(problem("[".repeat(16_000).as_bytes()).contains("not a JSON object"));
        assert!(problem(format!("{{\"id\":{}", "[".repeat(15_000)).as_bytes()).contains("recursion"));
    }
}
