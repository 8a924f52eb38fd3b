//! Decides which commands may be sent to Redis. All requests share one connection, so no command may change its state,
//! block it, or administer the server.

use crate::{
    auth::Access,
    error::{self, ErrorResponse, MAX_COMMAND_BYTES},
    request::Command,
    upstream::{Upstream, UpstreamError},
};

/// Commands that the gateway never sends.
mod forbidden;

/// Commands that only read.
mod read_only;

pub(crate) use read_only::{is_read_only, may_run_on_replica};

/// Upstash's limit for a key: 32 KiB.
const MAX_KEY_BYTES: usize = 32 << 10;

/// Stands for each argument that is longer than a key may be, when the server is asked which arguments are keys.
const LONG_ARGUMENT: &[u8] = b"\0long";

/// Decision about a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The command may be sent.
    Permitted,
    /// The command must not be sent; the error answers it.
    Rejected(ErrorResponse),
}

/// Decides about a command.
///
/// # Errors
/// When the decision needs information from Redis and Redis does not reply. That concerns the read-only token, and
/// arguments longer than a key may be.
pub(crate) async fn check(command: &Command, access: Access, upstream: &Upstream) -> Result<Verdict, UpstreamError> {
    let bad_request = |text: String| Ok(Verdict::Rejected(ErrorResponse::bad_request(text)));
    if let Some(text) = forbidden::error_text(command) {
        return bad_request(text);
    }
    // A cursor is valid on one server only.
    if upstream.is_cluster() && command.name() == "SCAN" {
        return bad_request(error::command_unavailable("SCAN"));
    }
    let bytes = command.size();
    if bytes > MAX_COMMAND_BYTES {
        return Ok(Verdict::Rejected(ErrorResponse::too_large(error::size_exceeded(bytes))));
    }
    if let Some(bytes) = oversized_key(command, upstream).await? {
        return bad_request(format!("ERR max key size exceeded. Limit: {MAX_KEY_BYTES} bytes, Actual: {bytes} bytes"));
    }
    if access == Access::ReadOnly && !is_read_only(command, upstream).await? {
        return Ok(Verdict::Rejected(not_permitted(&command.name())));
    }
    Ok(Verdict::Permitted)
}

/// Decides about a command that opens a stream. SUBSCRIBE, PSUBSCRIBE and MONITOR are no `@read` commands, so the
/// read-only token opens no stream. MONITOR would show it the values that others write.
pub(crate) fn check_stream(command: &Command, access: Access, upstream: &Upstream) -> Result<(), ErrorResponse> {
    let name = command.name();
    if access == Access::ReadOnly {
        return Err(not_permitted(&name));
    }
    // Each server of a cluster shows its own commands only.
    if upstream.is_cluster() && name == "MONITOR" {
        return Err(ErrorResponse::bad_request(error::command_unavailable(&name)));
    }
    Ok(())
}

fn not_permitted(name: &str) -> ErrorResponse {
    let name = name.to_ascii_lowercase();
    ErrorResponse::bad_request(format!(
        "NOPERM this user has no permissions to run the '{name}' command or its subcommand"
    ))
}

/// The size in bytes of the longest argument, if one above the limit is a key. Only the server knows which arguments
/// are keys. It is asked only if an argument is above the limit, and gets [`LONG_ARGUMENT`] instead of each of these.
async fn oversized_key(command: &Command, upstream: &Upstream) -> Result<Option<usize>, UpstreamError> {
    let is_long = |arg: &&Vec<u8>| arg.len() > MAX_KEY_BYTES;
    let Some(longest) = command.args.iter().filter(is_long).map(Vec::len).max() else {
        return Ok(None);
    };
    let shorten = |arg: &Vec<u8>| if is_long(&arg) { LONG_ARGUMENT.to_vec() } else { arg.clone() };
    let shortened = Command::new(command.args.iter().map(shorten).collect());
    let keys = upstream.key_arguments(&shortened).await?;
    Ok(keys.iter().any(|key| key == LONG_ARGUMENT).then_some(longest))
}
