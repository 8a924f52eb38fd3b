//! Reads commands from JSON. Error texts never quote the body, which may contain secrets.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use super::command::Command;

/// Parses a body.
///
/// # Errors
/// With the text for the client.
pub(super) fn parse<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, String> {
    if body.trim_ascii().is_empty() {
        return Err("EOF".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| {
        if !error.is_data() {
            return format!("ERR failed to parse the request body at line {}, column {}", error.line(), error.column());
        }
        // The texts of this module begin with ERR. Those of serde quote the body.
        match error.to_string().split(" at line ").next() {
            Some(text) if text.starts_with("ERR ") => text.to_owned(),
            _ => "expected JSON array".to_owned(),
        }
    })
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Command;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Command, A::Error> {
        let mut args = Vec::with_capacity(items.size_hint().unwrap_or(4));
        while let Some(Argument(bytes)) = items.next_element()? {
            args.push(bytes);
        }
        if args.first().is_none_or(Vec::is_empty) {
            return Err(de::Error::custom("ERR empty command"));
        }
        Ok(Command { args })
    }
}

/// One argument: the bytes of a string, or the JSON text of a number or boolean.
struct Argument(Vec<u8>);

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentVisitor)
    }
}

struct ArgumentVisitor;

impl<'de> Visitor<'de> for ArgumentVisitor {
    type Value = Argument;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string, number or boolean")
    }

    fn visit_str<E>(self, text: &str) -> Result<Argument, E> {
        Ok(Argument(text.as_bytes().to_vec()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Argument, E> {
        Err(E::custom("ERR null args are not supported"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "[": json.Delim"#))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "{": json.Delim"#))
    }
}
