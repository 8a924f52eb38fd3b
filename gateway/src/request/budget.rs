//! Bounds on the memory that the commands of a request take, while they are read.

use serde::de;

/// Arguments in one request: as many as Redis before version 7 accepted in one command. An argument takes 24 bytes even
/// if it is empty, and a body has room for 20 million of them.
pub(crate) const MAX_ARGUMENTS: usize = 1 << 20;

/// Bytes of all arguments of a request: as many as a body. The text of a number may be longer than in the body: `1e300`
/// has 301 digits.
const MAX_BYTES: usize = super::MAX_BODY_BYTES;

/// The arguments that a request may still have.
pub(super) struct Budget {
    arguments: usize,
    bytes: usize,
}

impl Budget {
    /// The budget of a request.
    pub(super) fn new() -> Self {
        Self { arguments: MAX_ARGUMENTS, bytes: MAX_BYTES }
    }

    /// Takes an argument that keeps so many bytes in memory.
    ///
    /// # Errors
    /// With the text for the client, if the request has too many arguments.
    pub(super) fn take<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let (Some(arguments), Some(bytes)) = (self.arguments.checked_sub(1), self.bytes.checked_sub(bytes)) else {
            return Err(E::custom(format_args!(
                "ERR max arguments in a request exceeded. Limit: {MAX_ARGUMENTS}, or {MAX_BYTES} bytes"
            )));
        };
        (self.arguments, self.bytes) = (arguments, bytes);
        Ok(())
    }
}
