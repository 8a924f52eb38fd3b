//! The result of one command.

use crate::{
    error::{self, MAX_COMMAND_BYTES},
    upstream::Value,
};

/// The reply to a command, or an error as `CODE text`.
pub(crate) type CommandResult = Result<Value, String>;

/// Separates errors from results. A result over 10 MiB is an error, as on Upstash.
pub(crate) fn from_reply(reply: Value) -> CommandResult {
    match reply {
        Value::ServerError(error) => Err(error::server_error_text(&error)),
        reply => match size(&reply) {
            bytes if bytes > MAX_COMMAND_BYTES => Err(error::size_exceeded(bytes)),
            _ => Ok(reply),
        },
    }
}

/// Size of a reply in bytes: its strings, and 8 for each array element.
fn size(value: &Value) -> usize {
    match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 8 + size(item)).sum(),
        _ => 0,
    }
}
