//! SQL: D1 in a Worker. Values reach a statement only as bound parameters.

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

/// A row of a result: column → value, in the order of the columns.
pub type Row = Map<String, Value>;

/// One statement of a transaction: `?1`, `?2`, … and what is bound to them (at most 100, D1's limit).
pub type Statement<'a> = (&'a str, Vec<Value>);

/// Runs SQL.
pub trait Database {
    /// Runs one statement with `?1`, `?2`, … bound to `params` (at most 100, D1's limit) and returns its rows.
    ///
    /// # Errors
    /// [`DatabaseError`] if the database is out of reach or refuses the statement.
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>>;

    /// Runs statements in their order as one transaction: all are done and nothing comes between them, or none is. Returns the
    /// rows of each.
    ///
    /// There is no read in between that a later statement could depend on: what must hold is said by a constraint of the
    /// schema, or by a condition in the statement.
    ///
    /// # Errors
    /// [`DatabaseError::Constraint`] if a statement breaks one: nothing was done. [`DatabaseError::Failed`] otherwise; if the
    /// database was out of reach, the transaction may have been done.
    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>>;
}

/// Why there is no result, in the database's own words: for the log, never for a visitor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// A CHECK, UNIQUE, NOT NULL or FOREIGN KEY of the schema says no: to try again does not help.
    #[error("database: {0}")]
    Constraint(String),
    /// It is out of reach, or refuses the statement itself.
    #[error("database: {0}")]
    Failed(String),
}

impl DatabaseError {
    /// The error that `message` tells of. D1 has no codes beside its text, such as `D1_ERROR: CHECK constraint
    /// failed: stock >= 0: SQLITE_CONSTRAINT`.
    #[must_use]
    pub fn from_message(message: String) -> Self {
        if message.contains("SQLITE_CONSTRAINT") || message.contains(" constraint failed") {
            return Self::Constraint(message);
        }
        Self::Failed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_constraint_is_told_from_a_database_out_of_reach() {
        for message in [
            "D1_ERROR: CHECK constraint failed: stock >= 0: SQLITE_CONSTRAINT",
            "D1_ERROR: UNIQUE constraint failed: orders.id: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)",
            "D1_ERROR: FOREIGN KEY constraint failed",
        ] {
            let error = DatabaseError::from_message(message.to_owned());
            assert_eq!(error, DatabaseError::Constraint(message.to_owned()));
        }
        for message in ["D1_ERROR: no such table: orders: SQLITE_ERROR", "D1_ERROR: Network connection lost.", ""] {
            let error = DatabaseError::from_message(message.to_owned());
            assert_eq!(error, DatabaseError::Failed(message.to_owned()));
        }
    }
}
