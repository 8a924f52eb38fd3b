//! Rules for query parameters.

use std::fmt;

use super::patterns::{MAX_NAMES, Patterns};
use crate::config::presets::Preset;

/// The parameters that change a page, and those that do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRules {
    /// `QUERY_IGNORED`: the page does not depend on them. The origin does not get them with a request for a page.
    pub ignored: Patterns,
    /// The entries of `QUERY_KEPT` without values. All entries are exceptions from `QUERY_IGNORED`.
    pub kept: Patterns,
    /// The entries of `QUERY_KEPT` with values, such as `route=product/product`.
    pub listed: Vec<ListedParameter>,
}

/// A parameter with certain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedParameter {
    pub name: String,
    pub values: Patterns,
}

impl QueryRules {
    /// Returns whether the parameter is part of the key.
    #[must_use]
    pub fn is_part_of_key(&self, name: &str) -> bool {
        !self.ignored.contains(name) || self.kept.contains(name) || self.listed.iter().any(|own| own.name == name)
    }

    /// Returns whether `QUERY_KEPT` lists this value of the parameter. Listed values are few, so popularity may admit such a page.
    #[must_use]
    pub fn is_listed(&self, name: &str, value: &str) -> bool {
        self.listed.iter().any(|own| own.contains(name, value))
    }

    /// Parses `QUERY_KEPT`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse_kept(text: &str) -> Result<(Patterns, Vec<ListedParameter>), String> {
        let (names, listed) = ListedParameter::parse_list(text)?;
        if listed.iter().any(|own| own.values.names().any(|value| value.contains('*'))) {
            return Err("has a value with *: list the values, because each of them is another page".to_owned());
        }
        Ok((names, listed))
    }
}

impl ListedParameter {
    /// Parses a list such as `page, route=product/product|product/category`: names with any value, and names with certain ones.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse_list(text: &str) -> Result<(Patterns, Vec<Self>), String> {
        let mut names = String::new();
        let mut listed = Vec::new();
        for entry in text.split(',').map(str::trim) {
            match entry.split_once('=').map(|(name, values)| (name.trim(), values.replace('|', ","))) {
                Some((name, values)) if !name.is_empty() && !name.contains(['*', ' ']) && listed.len() < MAX_NAMES => {
                    let values = Patterns::parse(&values)?;
                    if values.is_empty() {
                        return Err(format!("has {entry:?}, without a value"));
                    }
                    listed.push(Self { name: name.to_owned(), values });
                }
                Some(_) => {
                    return Err(format!(
                        "has {entry:?}: name a parameter and its values, such as route=product/product"
                    ));
                }
                None => names = format!("{names},{entry}"),
            }
        }
        Ok((Patterns::parse(&names)?, listed))
    }

    /// Returns whether the entry lists this value of this parameter.
    #[must_use]
    pub fn contains(&self, name: &str, value: &str) -> bool {
        self.name == name && self.values.contains(value)
    }
}

impl fmt::Display for ListedParameter {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.values.names().collect::<Vec<_>>().join("|"))
    }
}

impl Default for QueryRules {
    fn default() -> Self {
        let default = Preset::DEFAULT.get("QUERY_IGNORED").unwrap_or_default();
        // The default is valid; a test parses it.
        Self { ignored: Patterns::parse(default).unwrap_or_default(), kept: Patterns::default(), listed: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_parameter_can_be_kept() {
        let rules = QueryRules { kept: Patterns::parse("utm_source").unwrap(), ..QueryRules::default() };
        for (name, expected) in [("color", true), ("utm_medium", false), ("utm_source", true), ("gclid", false)] {
            assert_eq!(rules.is_part_of_key(name), expected, "{name}");
        }
    }

    #[test]
    fn a_parameter_can_be_kept_with_some_values_only() {
        let (kept, listed) =
            ListedParameter::parse_list("page, route=product/product|product/category, lang=en, route=common/*")
                .unwrap();
        let rules = QueryRules { kept, listed, ..QueryRules::default() };
        for (name, value, expected) in [
            ("route", "product/product", true),
            ("route", "product/category", true),
            ("route", "common/home", true),
            ("route", "checkout/cart", false),
            ("route", "", false),
            ("lang", "product/product", false),
            ("page", "2", false),
        ] {
            assert_eq!(rules.is_listed(name, value), expected, "{name}={value}");
        }
        assert!(rules.kept.contains("page") && !rules.kept.contains("route"));
        assert_eq!(rules.listed[0].to_string(), "route=product/product|product/category");
        assert!(QueryRules::parse_kept("route=common/*").is_err());
        for text in ["route=*", "a b", "route=", "=a", "r*=a", "a b=1", "route=|"] {
            assert!(ListedParameter::parse_list(text).is_err(), "{text}");
        }
    }
}
