//! Errors of commands and of transports. No message holds a key or a value, so each may be logged.

/// A failed exchange between the client and the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No complete response arrived within the deadline. The server may have executed the request.
    #[error("no answer in time")]
    Timeout,
    /// There is no connection, it broke, or the response is larger than allowed. The server may have executed the
    /// request.
    #[error("no connection, or it broke")]
    Unreachable,
    /// The transport refused to send the request, for the reason given: nothing was executed. A transport with a budget
    /// of requests returns this when the budget is spent.
    #[error("{0}")]
    NotSent(&'static str),
}

/// A command without a reply of the requested type. Each variant says what the caller can do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No response. Unless it is [`TransportError::NotSent`], the command may have been executed: repeat it if that is
    /// harmless.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A response that is not the protocol's: a status of 5xx, the error page of a proxy, or a truncated body. Check the
    /// server and its URL; the command may have been executed.
    #[error("the answer (status {status}) has no result of Redis")]
    NotRest {
        /// The HTTP status of the response.
        status: u16,
    },
    /// The server refused the token. Nothing was executed; check the token.
    #[error("the token was refused: look at UPSTASH_REDIS_REST_TOKEN")]
    Unauthorized,
    /// The plan's quota or rate limit is used up. Nothing was executed; send less, or raise the plan.
    #[error("over the quota or the rate limit")]
    Quota,
    /// Redis refused the command. Correct the command, or for `OOM` make room.
    #[error("refused: {code}")]
    Refused {
        /// The first word of the message from Redis (`WRONGTYPE`, `OOM`, …), or `ERR` if that is not an upper-case
        /// word. Upstash's messages without a code get one: `OOM` for a full database, `RECORD_FULL` for a key at the
        /// limit of its size.
        code: String,
    },
    /// The server does not execute this command, or not in this form: it does not know the command, the token has no
    /// permission for it, or the read-only form of a script cannot run. Use another command, or EVALSHA.
    #[error("the server does not execute this command")]
    Unavailable,
    /// The reply has another type than the one requested. The command was executed; another program may own the key.
    #[error("a reply of another type than expected")]
    UnexpectedType,
    /// An argument is not UTF-8, and it is not the last argument of a single command. Nothing was sent; send the
    /// command alone, with the bytes as its last argument.
    #[error("an argument is not UTF-8")]
    NotUtf8,
}

/// The beginnings of messages that refuse a command as such. The errors of a script that runs begin otherwise.
const UNAVAILABLE: [&str; 7] = [
    // Redis and Valkey.
    "ERR unknown command",
    "NOPERM",
    // A script that would write, in its read-only form: a write, a text without the flag, a replica.
    "ERR Write commands are not allowed",
    "ERR Can not execute a script",
    "READONLY",
    // A server that does not know a flag of the read-only text.
    "ERR Unexpected flag",
    // Upstash.
    "ERR Command is not available",
];

/// Upstash's messages for a limit of the plan, and our code for each: they all begin with `ERR`.
const LIMITS: [(&str, &str); 2] =
    [("capacity quota exceeded", "OOM"), ("max single record size exceeded", "RECORD_FULL")];

impl Error {
    /// Reads an error message from Redis. Keeps its first word only, because the rest may quote a value.
    pub(crate) fn from_message(message: &str) -> Self {
        let code = message.split([' ', ':']).next().unwrap_or_default();
        match code {
            "WRONGPASS" | "NOAUTH" => Self::Unauthorized,
            _ if message.contains("max requests limit exceeded") || message.contains("max daily request limit") => {
                Self::Quota
            }
            _ if UNAVAILABLE.iter().any(|text| message.starts_with(text)) => Self::Unavailable,
            _ => {
                let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                let own = || if is_code { code } else { "ERR" };
                let of_limit = LIMITS.iter().find(|(text, _)| message.contains(text));
                Self::Refused { code: of_limit.map_or_else(own, |(_, code)| *code).to_owned() }
            }
        }
    }

    /// Returns whether the same request may succeed a moment later: a lost or late response, or a failure of a server
    /// in between.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Transport(TransportError::Timeout | TransportError::Unreachable)
                | Self::NotRest { status: 500..=599 | 200 }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_available_differs_from_a_command_that_fails() {
        let refused = |code: &str| Error::Refused { code: code.to_owned() };
        for (message, expected) in [
            // Valkey 9.
            ("ERR unknown command 'EVALSHA_RO', with args beginning with: 'ab' '0' ", Error::Unavailable),
            ("NOPERM User ro has no permissions to run the 'evalsha_ro' command", Error::Unavailable),
            (
                "ERR Write commands are not allowed from read-only scripts. script: on @user_script:1.",
                Error::Unavailable,
            ),
            ("ERR Can not execute a script with write flag using *_ro command.", Error::Unavailable),
            ("ERR Unexpected flag in script shebang: allow-key-locking", Error::Unavailable),
            ("READONLY You can't write against a read only replica.", Error::Unavailable),
            // Redis 6 quotes otherwise.
            ("ERR unknown command `EVALSHA_RO`, with args beginning with: `ab`, ", Error::Unavailable),
            // Upstash.
            (
                "ERR Command is not available: 'EVALSHA_RO'. See https://upstash.com/docs for details",
                Error::Unavailable,
            ),
            // A limit of the plan.
            ("ERR max requests limit exceeded. Limit: 500000, Usage: 500000", Error::Quota),
            ("ERR DB capacity quota exceeded", refused("OOM")),
            ("ERR user_script:1: ERR DB capacity quota exceeded script: on @user_script:1.", refused("OOM")),
            ("ERR max single record size exceeded", refused("RECORD_FULL")),
            // Scripts that run, and fail.
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:1.",
                refused("WRONGTYPE"),
            ),
            (
                "ERR user_script:1: attempt to perform arithmetic on a nil value script: on @user_script:1.",
                refused("ERR"),
            ),
            ("ERR Unknown command called from script script: on @user_script:1.", refused("ERR")),
            (
                "ERR ACL failure in script: User ro has no permissions to run the 'hgetall' command script: on \
                 @user_script:1.",
                refused("ERR"),
            ),
            ("NOSCRIPT No matching script.", refused("NOSCRIPT")),
            ("BUSY a script runs: unknown command", refused("BUSY")),
        ] {
            assert_eq!(Error::from_message(message), expected, "{message}");
        }
    }
}
