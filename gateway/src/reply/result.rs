//! The result of one command.

use crate::{error, upstream::Value};

/// The reply to a command, or an error as `CODE text`.
pub(crate) type CommandResult = Result<Value, String>;

/// Separates errors from results.
pub(crate) fn from_reply(reply: Value) -> CommandResult {
    match reply {
        Value::ServerError(error) => Err(error::server_error_text(&error)),
        reply => Ok(reply),
    }
}
