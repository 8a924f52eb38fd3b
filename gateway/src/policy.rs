//! What a command may be and weigh. All requests share one connection: nothing passes that would change its state, hold
//! it up, or take over the server.

use crate::{access::Access, node::Failure, reply::Refusal, request::Command, upstream::Upstream};

/// Arguments, or result, of one command: 10 MiB.
pub(crate) const MAX_COMMAND: usize = 10 << 20;
/// 32 KiB.
const MAX_KEY: usize = 32 << 10;

/// They set or use the state of a connection, which REST does not have.
#[rustfmt::skip]
const OF_A_CONNECTION: [&str; 24] = [
    "ASKING", "AUTH", "CLIENT", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "PSYNC", "PUNSUBSCRIBE",
    "QUIT", "READONLY", "READWRITE", "REPLCONF", "RESET", "SELECT", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC",
    "UNSUBSCRIBE", "UNWATCH", "WATCH",
];

/// They wait, and everybody on the connection with them.
#[rustfmt::skip]
const BLOCKING: [&str; 10] = [
    "BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "WAITAOF",
];

/// They administer the server, up to writing files on its disk: no matter for who holds a token of one database.
#[rustfmt::skip]
const OF_THE_SERVER: [&str; 20] = [
    "ACL", "BGREWRITEAOF", "BGSAVE", "CLUSTER", "CONFIG", "DEBUG", "FAILOVER", "LATENCY", "MIGRATE", "MODULE",
    "PFDEBUG", "PFSELFTEST", "REPLICAOF", "RESTORE-ASKING", "ROLE", "SAVE", "SHUTDOWN", "SLAVEOF", "SLOWLOG", "SWAPDB",
];

/// They are `@read` for the server, but walk over all keys.
const READS_EVERYTHING: [&str; 2] = ["keys", "scan"];
/// They are not `@read` for the server, but harmless.
const READS_NOTHING: [&str; 2] = ["echo", "ping"];

/// Whether this command may be sent to Redis; a refused one has not been.
///
/// # Errors
/// When Redis had to be asked (a read-only token, an argument longer than a key may be) and did not answer.
pub(crate) async fn check(
    command: &Command,
    access: Access,
    upstream: &Upstream,
) -> Result<Result<(), Refusal>, Failure> {
    if let Some(error) = forbidden(command) {
        return Ok(Err(Refusal::bad_request(error)));
    }
    // A cursor is one server's.
    if upstream.is_cluster() && command.name() == "SCAN" {
        return Ok(Err(Refusal::bad_request(unavailable("SCAN"))));
    }
    let size = command.size();
    if size > MAX_COMMAND {
        return Ok(Err(Refusal::too_large(too_large(size))));
    }
    if let Some(size) = oversized_key(command, upstream).await? {
        return Ok(Err(Refusal::bad_request(format!(
            "ERR max key size exceeded. Limit: {MAX_KEY} bytes, Actual: {size} bytes"
        ))));
    }
    if access == Access::ReadOnly && !only_reads(command, upstream).await? {
        return Ok(Err(Refusal::bad_request(format!(
            "NOPERM this user has no permissions to run the '{}' command or its subcommand",
            command.name().to_ascii_lowercase()
        ))));
    }
    Ok(Ok(()))
}

/// The error of a command, or of its result, that weighs `size` bytes.
pub(crate) fn too_large(size: usize) -> String {
    format!("ERR max request size exceeded. Limit: {MAX_COMMAND} bytes, Actual: {size} bytes")
}

/// The error of a command that REST never takes.
fn forbidden(command: &Command) -> Option<String> {
    let name = command.name();
    let subcommand = command.arg(1);
    let of_a_connection =
        OF_A_CONNECTION.contains(&name.as_str()) || name == "SCRIPT" && subcommand.eq_ignore_ascii_case(b"DEBUG");
    if of_a_connection {
        return Some(format!(r#"ERR Command "{name}" is not allowed in REST or it has a special context path"#));
    }
    let unavailable = BLOCKING.contains(&name.as_str())
        || OF_THE_SERVER.contains(&name.as_str())
        || matches!(name.as_str(), "XREAD" | "XREADGROUP") && blocks(command);
    unavailable.then(|| self::unavailable(&name))
}

/// The error of a command that does not exist here.
pub(crate) fn unavailable(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    format!(
        "ERR Command is not available: '{name}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details"
    )
}

/// Whether an XREAD has the option BLOCK; after STREAMS, a stream may be called so.
fn blocks(command: &Command) -> bool {
    let mut options = command.args.iter().take_while(|arg| !arg.eq_ignore_ascii_case(b"STREAMS"));
    options.any(|arg| arg.eq_ignore_ascii_case(b"BLOCK"))
}

/// The size of a key over the limit. Only the server knows which arguments are keys, so it is asked, with a stand-in for
/// each long argument; which happens only where there is one.
async fn oversized_key(command: &Command, upstream: &Upstream) -> Result<Option<usize>, Failure> {
    let Some(longest) = command.args.iter().map(Vec::len).filter(|size| *size > MAX_KEY).max() else {
        return Ok(None);
    };
    let stand_in = b"\0long";
    let shortened = command.args.iter().map(|arg| if arg.len() > MAX_KEY { stand_in.to_vec() } else { arg.clone() });
    let keys = upstream.keys(&Command { args: shortened.collect() }).await?;
    Ok(keys.iter().any(|key| key == stand_in).then_some(longest))
}

/// Whether a command reads one place and writes nothing, by the server's own list.
pub(crate) async fn only_reads(command: &Command, upstream: &Upstream) -> Result<bool, Failure> {
    let name = command.name().to_ascii_lowercase();
    if READS_NOTHING.contains(&name.as_str()) {
        return Ok(true);
    }
    if READS_EVERYTHING.contains(&name.as_str()) {
        return Ok(false);
    }
    let subcommand = String::from_utf8_lossy(command.arg(1)).to_ascii_lowercase();
    let readable = upstream.readable().await?;
    Ok(readable.contains(&name) || readable.contains(&format!("{name}|{subcommand}")))
}
