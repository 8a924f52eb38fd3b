//! Deserializes database rows.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ports::{database::Row, error::Error};

/// Deserializes each row; columns match fields by name.
///
/// # Errors
/// [`Error::Platform`] if a row does not have the columns of `T`.
pub(super) fn deserialize_rows<T: DeserializeOwned>(rows: Vec<Row>) -> Result<Vec<T>, Error> {
    let read = rows.into_iter().map(|row| serde_json::from_value(Value::Object(row))).collect::<Result<_, _>>();
    read.map_err(|error| Error::Platform(format!("a database row does not match the schema: {error}")))
}
