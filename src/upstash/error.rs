//! What can go wrong between here and Redis. No message holds a key or a value, so each may be logged.

use crate::ports::fetch::FetchError;

/// Why Redis did not answer a command with a reply of the asked type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No answer; whether it was executed is not known.
    #[error(transparent)]
    Transport(#[from] FetchError),
    /// An answer that is not the protocol's: a proxy's error page, a body cut short.
    #[error("the answer (status {status}) is not Redis over REST")]
    NotRest { status: u16 },
    /// The token was refused.
    #[error("the token was refused: look at UPSTASH_REDIS_REST_TOKEN")]
    Unauthorized,
    /// Too many requests, or the plan's quota is used up.
    #[error("over the quota or the rate limit")]
    Quota,
    /// Redis refused the command; `code` is the first word of its message (`WRONGTYPE`, `OOM`, …).
    #[error("refused: {code}")]
    Refused { code: String },
    /// A reply of another type than the command has: somebody else's value under our key.
    #[error("a reply of another type than expected")]
    UnexpectedType,
    /// Bytes that JSON can not carry, in another place than a single command's last argument.
    #[error("an argument is not UTF-8")]
    NotUtf8,
}

impl Error {
    /// Reads Redis' error message. Its first word is kept, and the rest (which may quote a value) is not.
    pub(super) fn from_message(message: &str) -> Self {
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

    /// Whether the server does not know the script's hash. Matched by the first word: servers differ in the rest.
    pub(super) fn is_no_script(&self) -> bool {
        matches!(self, Self::Refused { code } if code == "NOSCRIPT")
    }

    /// Whether the same request may succeed a moment later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Transport(_) | Self::NotRest { status: 500..=599 | 200 })
    }
}
