//! Errors as clients of Upstash know them: an HTTP status and a text that begins with a Redis error code.

use http::StatusCode;

use crate::upstream::ServerError;

/// Upstash's limit for the arguments, and for the result, of one command: 10 MiB.
pub(crate) const MAX_COMMAND_BYTES: usize = 10 << 20;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorResponse {
    /// The status when the error answers the whole request. Inside a pipeline, only the text is sent.
    pub(crate) status: StatusCode,
    /// `CODE text`.
    pub(crate) text: String,
}

impl ErrorResponse {
    /// Status 400 with this text.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, text: text.into() }
    }

    /// An error of Redis as the answer to a whole request: 503 if Redis refuses commands for now, else 400.
    pub(crate) fn from_redis(text: String) -> Self {
        let status = if is_temporary(&text) { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_REQUEST };
        Self { status, text }
    }

    /// Status 413 with this text.
    pub(crate) fn too_large(text: String) -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, text }
    }
}

/// Codes of errors with which Redis refuses commands for now: it loads its data, runs a long script, has lost its
/// master, or moves slots. It has executed nothing.
const TEMPORARY: [&str; 5] = ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "TRYAGAIN"];

/// Returns whether the same command may succeed later, without a change of the command.
pub(crate) fn is_temporary(text: &str) -> bool {
    text.split(' ').next().is_some_and(|code| TEMPORARY.contains(&code))
}

/// The text for a command or a result of `bytes` bytes, which exceeds [`MAX_COMMAND_BYTES`].
pub(crate) fn size_exceeded(bytes: usize) -> String {
    format!("ERR max request size exceeded. Limit: {MAX_COMMAND_BYTES} bytes, Actual: {bytes} bytes")
}

/// The text for a command that this gateway does not offer.
pub(crate) fn command_unavailable(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    format!(
        "ERR Command is not available: '{name}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details"
    )
}

/// The server's error as `CODE text`, unchanged with one exception: for an unknown command the server quotes arguments,
/// so the text of [`command_unavailable`] replaces it.
pub(crate) fn server_error_text(error: &ServerError) -> String {
    let unknown_command = error.details().strip_prefix("unknown command '").and_then(|rest| rest.split('\'').next());
    match unknown_command {
        Some(name) => command_unavailable(name),
        None => error.text().trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{MAX_BODY_BYTES, MAX_COMMANDS, budget::MAX_ARGUMENTS};

    fn with_commas(number: usize) -> String {
        let digits = number.to_string();
        let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
        groups.join(",")
    }

    #[test]
    fn the_readme_names_the_limits_and_the_temporary_errors() {
        let readme = include_str!("../README.md");
        let (commands, arguments) = (with_commas(MAX_COMMANDS), with_commas(MAX_ARGUMENTS));
        for row in [
            format!("| a command | {} MiB |", MAX_COMMAND_BYTES >> 20),
            format!("| a request | {} MiB, {commands} commands, {arguments} arguments |", MAX_BODY_BYTES >> 20),
        ] {
            assert!(readme.contains(&row), "the table of limits in README.md lacks: {row}");
        }
        let row = readme.lines().find(|line| line.contains("Redis refuses commands for now")).unwrap_or_default();
        for code in TEMPORARY {
            assert!(row.contains(&format!("`{code}`")), "the table of statuses in README.md lacks {code}");
        }
    }
}
