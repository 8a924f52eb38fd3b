//! Commands that only read: the server's ACL category `@read`, with exceptions.

use crate::{
    request::Command,
    upstream::{Upstream, UpstreamError},
};

/// Commands of `@read` that iterate over all keys. The read-only token cannot run them.
const ALL_KEYS: [&str; 2] = ["keys", "scan"];
/// Commands outside `@read` that touch no data.
const HARMLESS: [&str; 2] = ["echo", "ping"];

/// Scripts that the server lets only read.
const SCRIPTS: [&str; 3] = ["eval_ro", "evalsha_ro", "fcall_ro"];

/// Returns whether a replica can execute a command.
///
/// # Errors
/// As [`is_read_only`].
pub(crate) async fn may_run_on_replica(command: &Command, upstream: &Upstream) -> Result<bool, UpstreamError> {
    let name = command.name().to_ascii_lowercase();
    let is_known = ALL_KEYS.contains(&name.as_str()) || SCRIPTS.contains(&name.as_str());
    Ok(is_known || is_read_only(command, upstream).await?)
}

/// Returns whether a command only reads, and does not iterate over all keys.
///
/// # Errors
/// When Redis must be asked for the category and does not reply.
pub(crate) async fn is_read_only(command: &Command, upstream: &Upstream) -> Result<bool, UpstreamError> {
    let name = command.name().to_ascii_lowercase();
    if HARMLESS.contains(&name.as_str()) {
        return Ok(true);
    }
    if ALL_KEYS.contains(&name.as_str()) {
        return Ok(false);
    }
    let subcommand = String::from_utf8_lossy(command.word(1)).to_ascii_lowercase();
    let read_commands = upstream.read_commands().await?;
    Ok(read_commands.contains(&name) || read_commands.contains(&format!("{name}|{subcommand}")))
}
