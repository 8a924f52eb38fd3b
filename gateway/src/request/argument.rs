//! One argument in JSON: the bytes of a string, or the JSON text of a number or boolean.
//!
//! serde parses a number before a visitor gets it, so the text of `1.0` is lost. Such numbers are rare. They fail the
//! first reading of a body with [`NEEDS_TEXT`]; a second one, which is slower, keeps the text of all numbers.

use std::fmt;

use serde::{
    Deserialize,
    de::{self, DeserializeSeed, Deserializer, Visitor},
};
use serde_json::value::RawValue;

/// The error of [`Numbers::Parsed`] for a number whose text may differ from that of its value.
pub(super) const NEEDS_TEXT: &str = "ERR a number must be read as text";

/// How numbers are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// As values. Integers of 64 bits are written as in the body, others are an error.
    Parsed,
    /// As text.
    Text,
}

/// An argument.
pub(super) struct Argument {
    /// Length in bytes.
    pub(super) len: usize,
    /// The bytes; `None` if the command has no room for them.
    pub(super) kept: Option<Vec<u8>>,
}

/// Reads an argument.
pub(super) struct ArgumentSeed {
    /// A longer argument is counted, but not kept.
    pub(super) room: usize,
    pub(super) numbers: Numbers,
}

impl<'de> DeserializeSeed<'de> for ArgumentSeed {
    type Value = Argument;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Argument, D::Error> {
        if self.numbers == Numbers::Parsed {
            return deserializer.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return self.visit_str(text);
        }
        serde_json::Deserializer::from_str(text).deserialize_any(self).map_err(de::Error::custom)
    }
}

impl<'de> Visitor<'de> for ArgumentSeed {
    type Value = Argument;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string, number or boolean")
    }

    fn visit_str<E>(self, text: &str) -> Result<Argument, E> {
        let kept = (text.len() <= self.room).then(|| text.as_bytes().to_vec());
        Ok(Argument { len: text.len(), kept })
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Argument, E> {
        self.visit_str(if value { "true" } else { "false" })
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Argument, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Argument, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Argument, E> {
        Err(E::custom(NEEDS_TEXT))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Argument, E> {
        Err(E::custom("ERR null args are not supported"))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "[": json.Delim"#))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "{": json.Delim"#))
    }
}
