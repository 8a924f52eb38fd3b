//! Errors of the configuration: the problem of each variable, and its remedy.

use std::fmt;

/// Every variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// One variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub variable: &'static str,
    /// The problem and its remedy, as the rest of a sentence that begins with the name. It never shows a secret.
    pub problem: String,
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ConfigError { variable, problem }) in self.0.iter().enumerate() {
            write!(f, "{}{variable} {problem}", if number == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
