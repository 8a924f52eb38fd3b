//! The variables of the local Worker: those of `--var` override .dev.vars, and .dev.vars overrides wrangler.toml.

use std::{fs, path::Path};

use xtask::{
    failure::Failure,
    variables::{LOCAL_REDIS_TIMEOUT, Variables},
};

use super::{dev_vars, edgefront_crate};

/// The file of the secrets.
pub const SECRETS: &str = ".dev.vars";
const REST_URL: &str = "UPSTASH_REDIS_REST_URL";

/// Reads all variables, generates missing secrets, and checks the result by the rules of the Worker. `overrides` are
/// those of the command line.
///
/// # Errors
/// With the names of all variables that are invalid or unknown.
pub fn read(overrides: &[(String, String)]) -> Result<Variables, Failure> {
    let text = fs::read_to_string("wrangler.toml").map_err(|cause| Failure::file("wrangler.toml", &cause))?;
    let mut variables = wrangler_variables(&text)?;
    let secrets = dev_vars::read_or_generate(Path::new(SECRETS))?;
    let is_unknown = |name: &&String| {
        !variables.contains_key(*name) && *name != REST_URL && !dev_vars::GENERATED.contains(&name.as_str())
    };
    if let Some(name) = overrides.iter().map(|(name, _)| name).find(is_unknown) {
        let known = variables.keys().map(String::as_str).chain(dev_vars::GENERATED);
        let advice = "use one of the variables in wrangler.toml and .dev.vars.example";
        let remedy = nearest(name, known)
            .map_or_else(|| advice.to_owned(), |near| format!("did you mean {near}? If not, {advice}"));
        return Err(Failure::new(format!("--var {name}: there is no such variable"), remedy));
    }
    // A placeholder: the address of the gateway is not known yet.
    variables.insert(REST_URL.to_owned(), "http://127.0.0.1".to_owned());
    variables.insert(LOCAL_REDIS_TIMEOUT.0.to_owned(), LOCAL_REDIS_TIMEOUT.1.to_owned());
    variables.extend(secrets);
    variables.extend(overrides.iter().cloned());
    match edgefront_crate::check(&variables) {
        Ok(()) => Ok(variables),
        Err(errors) => Err(Failure::new(errors, "correct them in wrangler.toml, .dev.vars or --var")),
    }
}

/// Returns whether wrangler.toml has a D1 database.
pub fn has_database(text: &str) -> Result<bool, Failure> {
    Ok(parse(text)?.contains_key("d1_databases"))
}

fn parse(text: &str) -> Result<toml::Table, Failure> {
    text.parse().map_err(|cause: toml::de::Error| {
        Failure::new(format!("wrangler.toml: {}", cause.message()), "correct the file")
    })
}

/// The table `[vars]` of wrangler.toml.
pub fn wrangler_variables(text: &str) -> Result<Variables, Failure> {
    let file = parse(text)?;
    let variables = file.get("vars").and_then(toml::Value::as_table).into_iter().flatten();
    variables
        .map(|(name, value)| match value.as_str() {
            Some(value) => Ok((name.clone(), value.to_owned())),
            None => Err(Failure::new(format!("wrangler.toml: {name} is not a string"), "put its value in quotes")),
        })
        .collect()
}

/// The known name that differs least from `name`, if at most two letters differ.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.map(|known| (strsim::osa_distance(name, known), known));
    distances.filter(|(distance, _)| *distance <= 2).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_variable_gets_the_nearest_name() {
        let known = ["ITEM_ROUTES", "LOGIN_ROUTES", "PAGE_TTL"];
        for (name, near) in [
            ("ITEM_ROUTE", Some("ITEM_ROUTES")),
            ("PAGE_TLT", Some("PAGE_TTL")),
            ("LOGINROUTES", Some("LOGIN_ROUTES")),
            ("SHOP_NAME", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), near, "{name}");
        }
    }
}
