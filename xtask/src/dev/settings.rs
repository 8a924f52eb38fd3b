//! The variables of the local Worker: those of `--var` override .dev.vars, and .dev.vars overrides wrangler.toml.

use std::{fs, path::Path};

use xtask::{
    failure::Failure,
    variables::{LOCAL_REDIS_TIMEOUT, Variables, check_names},
};

use super::{dev_vars, edgefront_crate};

const FILE: &str = "wrangler.toml";
/// The file of the secrets.
pub const SECRETS: &str = ".dev.vars";
/// Values in place of secrets that a check does not know.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"),
    ("UPSTASH_REDIS_REST_TOKEN", "token"),
    ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
];

/// Reads all variables, generates missing secrets, and checks the result by the rules of the Worker. `overrides` are
/// those of the command line.
///
/// # Errors
/// With the names of all variables that are invalid, or the first one that is unknown.
pub fn read(overrides: &[(String, String)]) -> Result<Variables, Failure> {
    let mut variables = wrangler_variables(&read_file()?)?;
    check_names("--var", overrides.iter().map(|(name, _)| name), edgefront_crate::names())?;
    let secrets = dev_vars::read_or_generate(Path::new(SECRETS))?;
    check_names(SECRETS, secrets.keys(), edgefront_crate::names())?;
    // The address of the gateway is not known yet.
    variables.extend(PLACEHOLDERS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    variables.insert(LOCAL_REDIS_TIMEOUT.0.to_owned(), LOCAL_REDIS_TIMEOUT.1.to_owned());
    variables.extend(secrets);
    variables.extend(overrides.iter().cloned());
    match edgefront_crate::check(&variables) {
        Ok(()) => Ok(variables),
        Err(errors) => Err(Failure::new(errors, "correct them in wrangler.toml, .dev.vars or --var")),
    }
}

/// Checks the variables of wrangler.toml by the rules of the Worker. It does not know the secrets.
///
/// # Errors
/// Those of [`read`].
pub fn check_file() -> Result<(), Failure> {
    check_text(&read_file()?)
}

fn read_file() -> Result<String, Failure> {
    fs::read_to_string(FILE).map_err(|cause| Failure::file(FILE, &cause))
}

fn check_text(text: &str) -> Result<(), Failure> {
    let mut variables = wrangler_variables(text)?;
    for (name, value) in PLACEHOLDERS {
        variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    edgefront_crate::check(&variables).map_err(|errors| Failure::new(format!("{FILE}: {errors}"), ""))
}

/// Returns whether wrangler.toml has a D1 database.
pub fn has_database(text: &str) -> Result<bool, Failure> {
    Ok(parse(text)?.contains_key("d1_databases"))
}

fn parse(text: &str) -> Result<toml::Table, Failure> {
    text.parse().map_err(|cause: toml::de::Error| {
        let before = cause.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::new(format!("{FILE}, line {line}: {}", cause.message()), "correct the line")
    })
}

/// The table `[vars]` of wrangler.toml.
///
/// # Errors
/// If the text is no TOML, or a variable is unknown or not a string. The Worker would start without an unknown one.
pub fn wrangler_variables(text: &str) -> Result<Variables, Failure> {
    let file = parse(text)?;
    let variables = file.get("vars").and_then(toml::Value::as_table).into_iter().flatten();
    let variables = variables.map(|(name, value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(Failure::new(format!("{FILE}: {name} is not a string"), "put its value in quotes")),
    });
    let variables = variables.collect::<Result<Variables, Failure>>()?;
    check_names(FILE, variables.keys(), edgefront_crate::names())?;
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_of_wrangler_toml_is_refused_before_a_deployment() {
        let check = |lines: &str| check_text(&format!("name = \"edgefront\"\n[vars]\n{lines}"));
        assert!(check("PATHS_PERSONAL = \"/account/*\"\n").is_ok());
        for (lines, message) in [
            (
                "PATH_PERSONAL = \"/account/*\"",
                "error: wrangler.toml: there is no variable PATH_PERSONAL\n       did you mean PATHS_PERSONAL? If not, \
                 docs/configuration.md lists all variables",
            ),
            (
                "PATHS_PERSONAL = \"account\"",
                "error: wrangler.toml: PATHS_PERSONAL has \"account\": a path begins with / and has no ?, #, { or //, \
                 such as /shop/*",
            ),
            ("PAGE_TTL = 60", "error: wrangler.toml: PAGE_TTL is not a string\n       put its value in quotes"),
            (
                "PRESET = \"\"\nPRESET = \"wordpress\"",
                "error: wrangler.toml, line 4: duplicate key\n       correct the line",
            ),
        ] {
            assert_eq!(check(lines).unwrap_err().to_string(), message);
        }
    }
}
