//! SQL: D1 in a Worker. Values reach a statement only as bound parameters.

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

/// A row of a result: column → value, in the order of the columns.
pub type Row = Map<String, Value>;

/// Runs SQL.
pub trait Database {
    /// Runs one statement with `?1`, `?2`, … bound to `params` (at most 100, D1's limit) and returns its rows.
    ///
    /// # Errors
    /// [`DatabaseError`] if the database is out of reach or refuses the statement.
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>>;
}

/// The database's own words, for the log; never for a visitor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("database: {0}")]
pub struct DatabaseError(pub String);
