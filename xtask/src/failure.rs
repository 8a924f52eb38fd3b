//! Why a command stopped. What a person reads is always a cause and a remedy, never a backtrace.

use std::fmt;

/// A cause and its remedy. The default one has neither: all is said already.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, one line.
    pub cause: String,
    /// What to do about it, one line; may be empty when the cause says it.
    pub remedy: String,
}

impl Failure {
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }

    /// A file that can not be read or written.
    pub fn file(path: impl AsRef<std::path::Path>, cause: &std::io::Error) -> Self {
        Self::new(format!("{}: {cause}", path.as_ref().display()), "check that it exists, and that you own it")
    }
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
