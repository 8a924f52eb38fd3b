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
    /// A response that is not the protocol's: the error page of a proxy, or a truncated body. Check the URL; the
    /// command may have been executed.
    #[error("the answer (status {status}) is not Redis over REST")]
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
        /// word.
        code: String,
    },
    /// The reply has another type than the one requested. The command was executed; another program may own the key.
    #[error("a reply of another type than expected")]
    UnexpectedType,
    /// An argument is not UTF-8, and it is not the last argument of a single command. Nothing was sent; send the
    /// command alone, with the bytes as its last argument.
    #[error("an argument is not UTF-8")]
    NotUtf8,
}

impl Error {
    /// Reads an error message from Redis. Keeps its first word only, because the rest may quote a value.
    pub(crate) fn from_message(message: &str) -> Self {
        let code = message.split([' ', ':']).next().unwrap_or_default();
        match code {
            "WRONGPASS" | "NOAUTH" => Self::Unauthorized,
            _ if message.contains("max requests limit exceeded") || message.contains("max daily request limit") => {
                Self::Quota
            }
            _ if !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => {
                Self::Refused { code: code.to_owned() }
            }
            _ => Self::Refused { code: "ERR".to_owned() },
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
