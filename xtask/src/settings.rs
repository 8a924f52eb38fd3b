//! The Worker's variables as `wrangler dev` will see them: `--var` before .dev.vars before wrangler.toml. They are checked by the Worker's own rules
//! before anything starts.

use std::{fs, path::Path};

use edgefront::config::Config;

use xtask::{failure::Failure, variables::REDIS_TIMEOUT};

use crate::dev_vars::{self, Vars};

const REST_URL: &str = "UPSTASH_REDIS_REST_URL";

/// Reads, completes and checks the variables. `overrides` are those of the command line.
///
/// # Errors
/// With the names of all variables that are wrong or unknown.
pub fn read(overrides: &[(String, String)]) -> Result<Vars, Failure> {
    let text = fs::read_to_string("wrangler.toml").map_err(|cause| Failure::file("wrangler.toml", &cause))?;
    let defaults = defaults(&text)?;
    let secrets = dev_vars::ensure(Path::new(".dev.vars"))?;
    let unknown = |name: &&String| {
        !defaults.contains_key(*name) && *name != REST_URL && !dev_vars::GENERATED.contains(&name.as_str())
    };
    if let Some(name) = overrides.iter().map(|(name, _)| name).find(unknown) {
        return Err(Failure::new(
            format!("--var {name}: there is no such variable"),
            "wrangler.toml and .dev.vars.example list them",
        ));
    }
    let mut vars = defaults;
    // The gateway's address is known later.
    vars.insert(REST_URL.to_owned(), "http://127.0.0.1".to_owned());
    vars.insert(REDIS_TIMEOUT.0.to_owned(), REDIS_TIMEOUT.1.to_owned());
    vars.extend(secrets);
    vars.extend(overrides.iter().cloned());
    match Config::from_lookup(|name| vars.get(name).cloned()) {
        Ok(_) => Ok(vars),
        Err(errors) => Err(Failure::new(errors.to_string(), "see wrangler.toml, .dev.vars and --var")),
    }
}

/// `[vars]` of wrangler.toml.
fn defaults(text: &str) -> Result<Vars, Failure> {
    let file: toml::Table = text
        .parse()
        .map_err(|cause: toml::de::Error| Failure::new(format!("wrangler.toml: {}", cause.message()), "mend it"))?;
    let vars = file.get("vars").and_then(toml::Value::as_table).into_iter().flatten();
    vars.map(|(name, value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(Failure::new(format!("wrangler.toml: {name} is not a string"), "put its value in quotes")),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_wrangler_toml_are_what_the_worker_takes_by_default() {
        let mut vars = defaults(include_str!("../../wrangler.toml")).unwrap();
        vars.insert(REST_URL.to_owned(), "http://127.0.0.1".to_owned());
        vars.insert("UPSTASH_REDIS_REST_TOKEN".to_owned(), "token".to_owned());
        vars.insert("SESSION_KEYS".to_owned(), "0123456789abcdef0123456789abcdef".to_owned());
        let told = Config::from_lookup(|name| vars.get(name).cloned()).map_err(|errors| errors.to_string()).unwrap();
        let secrets = [REST_URL, "UPSTASH_REDIS_REST_TOKEN", "SESSION_KEYS"];
        let silent = Config::from_lookup(|name| secrets.contains(&name).then(|| vars[name].clone())).ok().unwrap();
        assert_eq!(told.session.limit, silent.session.limit);
        assert_eq!((told.session.idle, told.session.max_age), (silent.session.idle, silent.session.max_age));
        assert_eq!(told.session.view_window, silent.session.view_window);
        assert_eq!((told.page.ttl, told.page.stale), (silent.page.ttl, silent.page.stale));
        assert_eq!((told.page.rank_limit, told.page.max_bytes), (silent.page.rank_limit, silent.page.max_bytes));
        assert_eq!(told.page.item_routes, silent.page.item_routes);
        assert_eq!((told.ranking.keep, told.ranking.half_life), (silent.ranking.keep, silent.ranking.half_life));
        assert_eq!((told.cart.max_lines, told.cart.max_quantity), (silent.cart.max_lines, silent.cart.max_quantity));
        assert_eq!((told.redis.timeout, told.origin.timeout), (silent.redis.timeout, silent.origin.timeout));
    }
}
