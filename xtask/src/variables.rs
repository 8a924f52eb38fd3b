//! Variables of the Worker, as commands give them.

/// What a visitor waits for Redis here. The Worker's own 300 ms are for a data centre; on a machine that also runs the shop, a compiler and a
/// browser, they would give Redis up for slow while it only waits for its turn.
pub const REDIS_TIMEOUT: (&str, &str) = ("REDIS_TIMEOUT_MS", "5000");

/// Reads `NAME=VALUE` of the command line.
///
/// # Errors
/// When there is no `=`, or no name.
pub fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_the_command_line_has_a_name() {
        assert_eq!(name_value("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(name_value("A="), Ok(("A".to_owned(), String::new())));
        assert!(name_value("A").is_err() && name_value("=b").is_err());
    }
}
