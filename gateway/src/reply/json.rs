//! Results in JSON: `{"result":…}` or `{"error":…}`, never both.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::result::CommandResult;
use crate::{error, upstream::Value};

/// Serializes a result as an object.
pub(crate) struct JsonResult<'a> {
    pub(crate) result: &'a CommandResult,
    /// True if strings are encoded in base64. Errors never are.
    pub(crate) base64: bool,
}

impl Serialize for JsonResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.result {
            Ok(value) => map.serialize_entry("result", &JsonValue { value, base64: self.base64 })?,
            Err(error) => map.serialize_entry("error", error)?,
        }
        map.end()
    }
}

struct JsonValue<'a> {
    value: &'a Value,
    base64: bool,
}

impl JsonValue<'_> {
    fn serialize_string<S: Serializer>(&self, bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if self.base64 {
            serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
        } else {
            serializer.serialize_str(&String::from_utf8_lossy(bytes))
        }
    }
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Okay => serializer.serialize_str("OK"),
            Value::BulkString(bytes) => self.serialize_string(bytes, serializer),
            Value::SimpleString(text) => self.serialize_string(text, serializer),
            Value::ServerError(error) => self.serialize_string(error::server_error_text(error).as_bytes(), serializer),
            Value::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for value in items {
                    array.serialize_element(&JsonValue { value, base64: self.base64 })?;
                }
                array.end()
            }
            Value::Nil => serializer.serialize_unit(),
        }
    }
}
