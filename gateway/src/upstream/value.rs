//! Replies of Redis as values.

/// A reply in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No value: `$-1` or `*-1`.
    Nil,
    /// An integer.
    Int(i64),
    /// The status `OK`.
    Okay,
    /// Any other status. It may quote bytes of the command.
    SimpleString(Vec<u8>),
    /// A string of bytes.
    BulkString(Vec<u8>),
    /// A list.
    Array(Vec<Value>),
    /// An error.
    ServerError(ServerError),
}

/// The text of an error reply. Bytes that are not UTF-8 are replaced by U+FFFD: Redis quotes bytes of the command. Line
/// breaks are replaced by spaces, because a line of RESP2 cannot contain them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerError(String);

impl ServerError {
    /// The error with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into().replace(['\r', '\n'], " "))
    }

    /// `CODE text`.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The first word, such as `ERR` or `MOVED`.
    pub(crate) fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// The text after the code. Empty if there is none.
    pub(crate) fn details(&self) -> &str {
        self.0.split_once(' ').map_or("", |(_, details)| details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_in_an_error_are_spaces() {
        let error = ServerError::new("ERR\nunknown command 'a\r\nb'");
        assert_eq!((error.code(), error.details()), ("ERR", "unknown command 'a  b'"));
    }
}
