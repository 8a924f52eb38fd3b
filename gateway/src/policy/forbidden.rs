//! Commands that the gateway never sends to Redis.

use crate::{error, request::Command};

/// Commands that set or use the state of a connection. REST has no connections.
#[rustfmt::skip]
const CONNECTION_STATE: [&str; 24] = [
    "ASKING", "AUTH", "CLIENT", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "PSYNC", "PUNSUBSCRIBE",
    "QUIT", "READONLY", "READWRITE", "REPLCONF", "RESET", "SELECT", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC",
    "UNSUBSCRIBE", "UNWATCH", "WATCH",
];

/// Commands that block the connection, and with it all other requests.
#[rustfmt::skip]
const BLOCKING: [&str; 10] = [
    "BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "WAITAOF",
];

/// Commands that administer the server; some write files to its disk. A token grants access to data, not to the server.
#[rustfmt::skip]
const ADMINISTRATION: [&str; 21] = [
    "ACL", "BGREWRITEAOF", "BGSAVE", "CLUSTER", "COMMANDLOG", "CONFIG", "DEBUG", "FAILOVER", "LATENCY", "MIGRATE",
    "MODULE", "PFDEBUG", "PFSELFTEST", "REPLICAOF", "RESTORE-ASKING", "ROLE", "SAVE", "SHUTDOWN", "SLAVEOF", "SLOWLOG",
    "SWAPDB",
];

/// Words of HTTP. Redis takes them for the attack of a web page and closes the connection.
const HTTP: [&str; 2] = ["HOST:", "POST"];

/// Upstash's error text for a forbidden command; `None` for all others.
pub(super) fn error_text(command: &Command) -> Option<String> {
    if let Some(name) = HTTP.into_iter().find(|name| command.word(0).eq_ignore_ascii_case(name.as_bytes())) {
        return Some(error::command_unavailable(name));
    }
    let name = command.name();
    let is_script_debug = name == "SCRIPT" && command.word(1).eq_ignore_ascii_case(b"DEBUG");
    if CONNECTION_STATE.contains(&name.as_str()) || is_script_debug {
        return Some(format!(r#"ERR Command "{name}" is not allowed in REST or it has a special context path"#));
    }
    let is_blocking_read = matches!(name.as_str(), "XREAD" | "XREADGROUP") && has_block_option(command);
    let is_unavailable =
        BLOCKING.contains(&name.as_str()) || ADMINISTRATION.contains(&name.as_str()) || is_blocking_read;
    is_unavailable.then(|| error::command_unavailable(&name))
}

/// Returns whether XREAD or XREADGROUP has the option BLOCK. After STREAMS, `BLOCK` is the name of a stream.
fn has_block_option(command: &Command) -> bool {
    let mut options = command.stream_options().take_while(|(_, word)| !word.eq_ignore_ascii_case(b"STREAMS"));
    options.any(|(_, word)| word.eq_ignore_ascii_case(b"BLOCK"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_forbidden_command() {
        let readme = include_str!("../../README.md");
        for commands in [CONNECTION_STATE.as_slice(), &BLOCKING, &ADMINISTRATION, &HTTP] {
            let listed = commands.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            assert!(readme.contains(&listed), "add to the table of refused commands in README.md: {listed}");
        }
    }
}
