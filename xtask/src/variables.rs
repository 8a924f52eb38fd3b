//! The Worker's variables (`[vars]` of wrangler.toml and the secrets).

use std::collections::BTreeMap;

use crate::failure::Failure;

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

/// Checks the names of variables. `place` is the file or the option that has them.
///
/// # Errors
/// With the first name that is not one of `known`, and the known name that is most like it.
pub fn check_names<'a, 'b>(
    place: &str,
    names: impl IntoIterator<Item = &'a String>,
    known: impl Iterator<Item = &'b str> + Clone,
) -> Result<(), Failure> {
    let is_unknown = |name: &&String| !known.clone().any(|known| known == *name);
    let Some(name) = names.into_iter().find(is_unknown) else { return Ok(()) };
    let advice = "docs/configuration.md lists all variables";
    let remedy =
        nearest(name, known).map_or_else(|| advice.to_owned(), |near| format!("did you mean {near}? If not, {advice}"));
    Err(Failure::new(format!("{place}: there is no variable {name}"), remedy))
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
            let failure = check_names("--var", [&name.to_owned()], known.into_iter()).unwrap_err();
            assert_eq!(failure.cause, format!("--var: there is no variable {name}"));
            assert!(near.is_none_or(|near| failure.remedy.starts_with(&format!("did you mean {near}?"))), "{failure}");
        }
        assert!(check_names("--var", [&"PAGE_TTL".to_owned()], known.into_iter()).is_ok());
    }

    #[test]
    fn a_value_may_be_empty_but_a_name_may_not() {
        assert_eq!(parse_name_value("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_name_value("A="), Ok(("A".to_owned(), String::new())));
        assert!(parse_name_value("A").is_err() && parse_name_value("=b").is_err());
    }
}
