//! Bounds on the memory that the commands of a request take, while they are read.

use serde::de;

/// Arguments in one request: as many as Redis before version 7 accepted in one command. An argument takes 24 bytes even
/// if it is empty, and a body has room for 20 million of them.
pub(crate) const MAX_ARGUMENTS: usize = 1 << 20;

/// The arguments that a request may still have.
pub(super) struct Budget {
    arguments: usize,
}

impl Budget {
    /// The budget of a request.
    pub(super) fn new() -> Self {
        Self { arguments: MAX_ARGUMENTS }
    }

    /// Takes an argument. No argument is longer than its text in the body, so its bytes need no bound of their own.
    ///
    /// # Errors
    /// With the text for the client, if the request has too many arguments.
    pub(super) fn take<E: de::Error>(&mut self) -> Result<(), E> {
        let left = self.arguments.checked_sub(1);
        self.arguments = left.ok_or_else(|| {
            E::custom(format_args!("ERR max arguments in a request exceeded. Limit: {MAX_ARGUMENTS}"))
        })?;
        Ok(())
    }
}
