//! The only module of xtask that uses the crate `edgefront`.

use edgefront::{
    config::{
        Config,
        variables::{SECRETS, VARIABLES},
    },
    demo,
};
use xtask::variables::Variables;

/// Checks the variables by the rules of the Worker.
///
/// # Errors
/// With every variable that is missing or invalid.
pub fn check(variables: &Variables) -> Result<(), String> {
    Config::from_lookup(|name| variables.get(name).cloned()).map(drop).map_err(|errors| errors.to_string())
}

/// The names of all variables and secrets of the Worker.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    VARIABLES.iter().chain(SECRETS).map(|(variable, _)| variable.name)
}

/// The rows of the demo shop's sale items and flash sales.
pub fn sale_rows() -> impl Iterator<Item = &'static str> + Clone {
    demo::ON_SALE.into_iter().chain(demo::FLASH_SALES)
}

#[cfg(test)]
mod tests {
    use xtask::wrangler_toml::WranglerToml;

    use super::*;
    use crate::settings;

    #[test]
    fn wrangler_toml_repeats_the_defaults_of_the_worker() {
        let required = [
            ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"),
            ("UPSTASH_REDIS_REST_TOKEN", "token"),
            ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = |variables: &Variables| {
            Config::from_lookup(|name| variables.get(name).cloned()).map_err(|errors| errors.to_string()).unwrap()
        };
        let file = WranglerToml::parse(include_str!("../../wrangler.toml")).unwrap();
        let mut variables = Variables::from(required);
        let default = config(&variables);
        variables.extend(settings::wrangler_variables(&file).unwrap());
        let listed = config(&variables);
        // The demo shop's table is no default.
        assert_eq!(listed, Config { rows: listed.rows.clone(), ..default });
    }
}
