//! D1 as [`Database`].

use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement};

use crate::database::{Database, DatabaseError, Row, Statement};

/// A D1 binding.
pub struct D1(pub D1Database);

impl Database for D1 {
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async move { self.prepare(sql, params)?.all().await.map_err(failed)?.results().map_err(failed) })
    }

    /// D1's `batch`, which is one transaction.
    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async move {
            let statements = statements.iter().map(|(sql, params)| self.prepare(sql, params));
            let results = self.0.batch(statements.collect::<Result<_, _>>()?).await.map_err(failed)?;
            results.iter().map(|result| result.results().map_err(failed)).collect()
        })
    }
}

impl D1 {
    fn prepare(&self, sql: &str, params: &[Value]) -> Result<D1PreparedStatement, DatabaseError> {
        let params = params.iter().map(parameter).collect::<Result<Vec<_>, _>>()?;
        self.0.prepare(sql).bind(&params).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: worker::Error) -> DatabaseError {
    DatabaseError::from_message(match &error {
        // Its text shows the cause only, which need not name the constraint; the message does.
        worker::Error::D1(error) => AsRef::<js_sys::Error>::as_ref(error).message().into(),
        error => error.to_string(),
    })
}

/// The types that D1 binds. Numbers are JavaScript's: whole ones beyond 2⁵³ would not arrive as they are.
fn parameter(value: &Value) -> Result<JsValue, DatabaseError> {
    let unfit = |what: &str| DatabaseError::Failed(format!("{what} can not be bound"));
    match value {
        Value::Null => Ok(JsValue::NULL),
        Value::Bool(bool) => Ok((*bool).into()),
        Value::Number(number) => number.as_f64().map(Into::into).ok_or_else(|| unfit("this number")),
        Value::String(text) => Ok(text.into()),
        Value::Array(_) | Value::Object(_) => Err(unfit("a list or an object")),
    }
}
