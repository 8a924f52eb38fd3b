//! SQL: D1 in a Worker. Values reach a statement only as bound parameters.

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

/// A row of a result: column → value, in the order of the columns.
pub type Row = Map<String, Value>;

/// A statement with `?1`, `?2`, … and its parameters (at most 100, D1's limit).
pub type Statement<'a> = (&'a str, Vec<Value>);

/// Runs SQL.
pub trait Database {
    /// Runs one statement with `?1`, `?2`, … bound to `params` (at most 100, D1's limit) and returns its rows.
    ///
    /// # Errors
    /// [`DatabaseError`] if the database is unreachable or rejects the statement.
    fn query<'a>(&'a self, sql: &'a str, params: &'a [Value]) -> LocalBoxFuture<'a, Result<Vec<Row>, DatabaseError>>;

    /// Runs statements in order as one transaction: all or none of them take effect. Returns the rows of each.
    ///
    /// A later statement cannot depend on an earlier read. Invariants are constraints of the schema or conditions in a
    /// statement.
    ///
    /// # Errors
    /// [`DatabaseError::Constraint`] if a statement violates a constraint: nothing was changed.
    /// [`DatabaseError::Failed`] otherwise; if the database was unreachable, the transaction may have been executed.
    fn transaction<'a>(
        &'a self,
        statements: &'a [Statement<'a>],
    ) -> LocalBoxFuture<'a, Result<Vec<Vec<Row>>, DatabaseError>>;
}

/// A database error with the database's message: for the log, never for a visitor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// A CHECK, UNIQUE, NOT NULL or FOREIGN KEY constraint is violated; a retry fails again.
    #[error("database: {0}")]
    Constraint(String),
    /// The database is unreachable or rejects the statement.
    #[error("database: {0}")]
    Failed(String),
}

impl DatabaseError {
    /// Classifies a message. D1 has no error codes beside its text, such as
    /// `D1_ERROR: CHECK constraint failed: stock >= 0: SQLITE_CONSTRAINT`.
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
    fn a_violated_constraint_differs_from_an_unreachable_database() {
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
