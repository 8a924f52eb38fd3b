//! The variables of the local Worker: those of `--var` override .dev.vars, and .dev.vars overrides wrangler.toml.

use std::path::Path;

use xtask::{
    failure::Failure,
    variables::{LOCAL_REDIS_TIMEOUT, Variables, check_names},
    wrangler_toml::{FILE, WranglerToml},
};

use crate::{dev_vars, edgefront_crate};

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
    let mut variables = wrangler_variables(&WranglerToml::read()?)?;
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

/// Checks the variables of wrangler.toml, also those of its environments, by the rules of the Worker. It does not know the
/// secrets.
///
/// # Errors
/// Those of [`read`].
pub fn check_file() -> Result<(), Failure> {
    check(&WranglerToml::read()?)
}

fn check(file: &WranglerToml) -> Result<(), Failure> {
    let mut tables = file.variables_of_environments()?;
    tables.insert(0, (FILE.to_owned(), file.variables()?));
    for (place, mut variables) in tables {
        check_names(&place, variables.keys(), edgefront_crate::names())?;
        for (name, value) in PLACEHOLDERS {
            variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        edgefront_crate::check(&variables).map_err(|errors| Failure::new(format!("{place}: {errors}"), ""))?;
    }
    Ok(())
}

/// The variables of wrangler.toml.
///
/// # Errors
/// If a variable is unknown or not a string. The Worker would start without an unknown one.
pub fn wrangler_variables(file: &WranglerToml) -> Result<Variables, Failure> {
    let variables = file.variables()?;
    check_names(FILE, variables.keys(), edgefront_crate::names())?;
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_of_wrangler_toml_is_refused_before_a_deployment() {
        let check = |lines: &str| check(&WranglerToml::parse(&format!("name = \"edgefront\"\n[vars]\n{lines}"))?);
        assert!(check("PATHS_PERSONAL = \"/account/*\"\n[env.staging]\nworkers_dev = true\n").is_ok());
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
            (
                "PAGE_TTL = \"60\"\n[env.staging.vars]\nPAGE_TLT = \"60\"",
                "error: wrangler.toml, [env.staging.vars]: there is no variable PAGE_TLT\n       did you mean PAGE_TTL? If not, \
                 docs/configuration.md lists all variables",
            ),
            (
                "[env.a.vars]\nPAGE_TTL = \"60\"\n[env.b.vars]\nPAGE_TTL = \"soon\"",
                "error: wrangler.toml, [env.b.vars]: PAGE_TTL is \"soon\": set a whole number of seconds, at least 0",
            ),
            (
                "[env.b]\nvars = { PAGE_TTL = 60 }",
                "error: wrangler.toml, [env.b.vars]: PAGE_TTL is not a string\n       put its value in quotes",
            ),
        ] {
            assert_eq!(check(lines).unwrap_err().to_string(), message);
        }
    }
}
