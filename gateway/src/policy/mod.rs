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

/// Decides about each command.
///
/// # Errors
/// When a decision needs information from Redis and Redis does not reply. That concerns the read-only token, and
/// arguments longer than a key may be.
pub(crate) async fn check(
    commands: &[Command],
    access: Access,
    upstream: &Upstream,
) -> Result<Vec<Verdict>, UpstreamError> {
    let mut verdicts: Vec<_> = commands.iter().map(|command| check_form(command, upstream)).collect();
    reject_long_keys(commands, &mut verdicts, upstream).await?;
    if access == Access::ReadOnly {
        for (command, verdict) in commands.iter().zip(&mut verdicts) {
            if *verdict == Verdict::Permitted && !is_read_only(command, upstream).await? {
                *verdict = Verdict::Rejected(not_permitted(&command.name()));
            }
        }
    }
    Ok(verdicts)
}

/// Decides as far as Redis need not be asked.
fn check_form(command: &Command, upstream: &Upstream) -> Verdict {
    if let Some(text) = forbidden::error_text(command) {
        return Verdict::Rejected(ErrorResponse::bad_request(text));
    }
    // A cursor is valid on one server only.
    if upstream.is_cluster() && command.name() == "SCAN" {
        return Verdict::Rejected(ErrorResponse::bad_request(error::command_unavailable("SCAN")));
    }
    let bytes = command.size();
    if bytes > MAX_COMMAND_BYTES {
        return Verdict::Rejected(ErrorResponse::too_large(error::size_exceeded(bytes)));
    }
    Verdict::Permitted
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

/// Rejects the commands with a key above the limit. Only the server knows which arguments are keys, except those of
/// scripts. It is asked only about commands with an argument above the limit, once for all of them, and gets
/// [`LONG_ARGUMENT`] instead of each of these.
async fn reject_long_keys(
    commands: &[Command],
    verdicts: &mut [Verdict],
    upstream: &Upstream,
) -> Result<(), UpstreamError> {
    let is_long = |arg: &&Vec<u8>| arg.len() > MAX_KEY_BYTES;
    let shorten = |arg: &Vec<u8>| if is_long(&arg) { LONG_ARGUMENT.to_vec() } else { arg.clone() };
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    for (command, verdict) in commands.iter().zip(verdicts) {
        let Some(longest) = command.args.iter().filter(is_long).map(Vec::len).max() else { continue };
        if *verdict != Verdict::Permitted {
            continue;
        }
        match script_keys(command) {
            Some(keys) if keys.iter().any(|key| is_long(&key)) => *verdict = long_key(longest),
            Some(_) => {}
            None => {
                questions.push(Command::new(command.args.iter().map(shorten).collect()));
                asked.push((verdict, longest));
            }
        }
    }
    if questions.is_empty() {
        return Ok(());
    }
    for (keys, (verdict, longest)) in upstream.key_arguments(&questions).await?.iter().zip(asked) {
        if keys.iter().any(|key| key == LONG_ARGUMENT) {
            *verdict = long_key(longest);
        }
    }
    Ok(())
}

/// The keys of a script or function; `None` for other commands, and if their number is wrong.
fn script_keys(command: &Command) -> Option<&[Vec<u8>]> {
    if !command.runs_script() {
        return None;
    }
    let count: usize = std::str::from_utf8(command.arg(2)).ok()?.parse().ok()?;
    command.args.get(3..)?.get(..count)
}

fn long_key(bytes: usize) -> Verdict {
    let text = format!("ERR max key size exceeded. Limit: {MAX_KEY_BYTES} bytes, Actual: {bytes} bytes");
    Verdict::Rejected(ErrorResponse::bad_request(text))
}
