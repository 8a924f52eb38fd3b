//! The error type of all commands. Its text names a cause and a remedy, and has no backtrace.

use std::{error::Error, fmt, io, path::Path};

/// A cause and its remedy.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub cause: String,
    /// The advice for the reader. Empty if the cause says enough.
    pub remedy: String,
}

impl Failure {
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }

    /// A file or directory that cannot be read or written.
    pub fn file(path: impl AsRef<Path>, error: &io::Error) -> Self {
        let cause = format!("{}: {error}", path.as_ref().display());
        Self::new(cause, "check that it exists and that you may read and write it")
    }

    /// A failure that the command has printed already.
    #[must_use]
    pub fn already_printed() -> Self {
        Self::default()
    }

    pub(crate) fn is_already_printed(&self) -> bool {
        *self == Self::default()
    }
}

/// The last cause of an error, as text. The others only repeat the address.
#[must_use]
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.cause)?;
        if !self.remedy.is_empty() {
            write!(f, "\n       {}", self.remedy)?;
        }
        Ok(())
    }
}
