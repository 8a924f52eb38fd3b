//! The Worker's variables (`[vars]` of wrangler.toml and the secrets).

use std::collections::BTreeMap;

/// Values by name.
pub type Variables = BTreeMap<String, String>;

/// `REDIS_TIMEOUT_MS` for local runs, 5 s. The default of 300 ms is meant for a data centre. A development machine also
/// runs the shop, a compiler and a browser; that load must not trip the circuit breaker for Redis.
pub const LOCAL_REDIS_TIMEOUT: (&str, &str) = ("REDIS_TIMEOUT_MS", "5000");

/// Parses `NAME=VALUE` of the command line.
///
/// # Errors
/// When the text has no `=`, or no name.
pub fn parse_name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_be_empty_but_a_name_may_not() {
        assert_eq!(parse_name_value("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_name_value("A="), Ok(("A".to_owned(), String::new())));
        assert!(parse_name_value("A").is_err() && parse_name_value("=b").is_err());
    }
}
