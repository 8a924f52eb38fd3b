//! The documents agree with the code.

use std::collections::BTreeSet;

/// The rows of the tables in a text whose lines begin with `prefix`.
fn rows<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(prefix)).filter(|line| line.starts_with('|')).collect()
}

#[test]
fn the_documented_schema_is_the_codes() {
    let code = include_str!("../../../src/schema/keys.rs");
    let document = include_str!("../../../docs/redis.md");
    assert_eq!(rows(document, ""), rows(code, "//! "), "copy the tables of src/schema/keys.rs to docs/redis.md");
}

/// Names in upper case with an underscore, between quotes or backticks.
fn variables(text: &str, quote: char) -> BTreeSet<&str> {
    let is_variable = |word: &&str| {
        word.contains('_')
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    text.split(quote).filter(is_variable).collect()
}

#[test]
fn every_variable_is_documented_and_every_documented_one_is_read() {
    let read = variables(include_str!("../../../src/config/reader.rs").split("#[cfg(test)]").next().unwrap(), '"');
    let documented = variables(include_str!("../../../docs/configuration.md"), '`');
    let missing: Vec<_> = read.difference(&documented).collect();
    assert!(missing.is_empty(), "add to docs/configuration.md: {missing:?}");
    // The platform's rate limits are bindings, not variables.
    let bindings = BTreeSet::from(["LOGIN_LIMIT", "WRITE_LIMIT", "VIEW_LIMIT"]);
    let unknown: Vec<_> = documented.difference(&read).filter(|name| !bindings.contains(**name)).collect();
    assert!(unknown.is_empty(), "no code reads {unknown:?}");
}
