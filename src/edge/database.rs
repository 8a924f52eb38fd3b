//! D1 as [`Database`]. Statements and rows cross the border of wasm as JSON, one text each: reading D1's own objects
//! would cost a call per column.

use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use wasm_bindgen::{JsCast, JsValue};

use super::{glue, task::Settled};
use crate::ports::database::{Database, DatabaseError, Row, Statement};

/// A D1 binding.
pub struct D1(pub JsValue);

impl Database for D1 {
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>> {
        Box::pin(async move {
            let rows = self.run(&[(sql, params)]).await?;
            Ok(rows.into_iter().next().unwrap_or_default())
        })
    }

    /// D1's `batch`, which is one transaction.
    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(async move {
            let statements: Vec<_> = statements.iter().map(|(sql, params)| (*sql, params.as_slice())).collect();
            self.run(&statements).await
        })
    }
}

impl D1 {
    async fn run(&self, statements: &[(&str, &[Value])]) -> Result<Vec<Vec<Row>>, DatabaseError> {
        if statements.iter().flat_map(|(_, params)| *params).any(|param| param.is_array() || param.is_object()) {
            return Err(DatabaseError::Failed("a list or an object cannot be bound".to_owned()));
        }
        let text = serde_json::to_string(statements).map_err(|error| unreadable(&error))?;
        let rows = Settled::from(glue::query(&self.0, &text)).await.map_err(|error| failed(&error))?;
        serde_json::from_str(&rows.as_string().unwrap_or_default()).map_err(|error| unreadable(&error))
    }
}

/// Uses the error's message, because it names a violated constraint.
fn failed(error: &JsValue) -> DatabaseError {
    let message = error.dyn_ref().map(|error: &js_sys::Error| error.message().into());
    DatabaseError::from_message(message.unwrap_or_else(|| format!("{error:?}")))
}

fn unreadable(error: &serde_json::Error) -> DatabaseError {
    DatabaseError::Failed(error.to_string())
}
