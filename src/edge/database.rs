//! D1 as [`Database`].

use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use wasm_bindgen::JsValue;
use worker::D1Database;

use crate::database::{Database, DatabaseError, Row};

/// A D1 binding.
pub struct D1(pub D1Database);

impl Database for D1 {
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async move {
            let params = params.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
            let result = self.0.prepare(sql).bind(&params).map_err(failed)?.all().await.map_err(failed)?;
            result.results().map_err(failed)
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: worker::Error) -> DatabaseError {
    DatabaseError(error.to_string())
}

/// The types that D1 binds. Numbers are JavaScript's: whole ones beyond 2⁵³ would not arrive as they are.
fn parameter(value: &Value) -> Result<JsValue, DatabaseError> {
    match value {
        Value::Null => Ok(JsValue::NULL),
        Value::Bool(bool) => Ok((*bool).into()),
        Value::Number(number) => number.as_f64().map(Into::into).ok_or_else(|| DatabaseError("a number".to_owned())),
        Value::String(text) => Ok(text.into()),
        Value::Array(_) | Value::Object(_) => Err(DatabaseError("lists and objects can not be bound".to_owned())),
    }
}
