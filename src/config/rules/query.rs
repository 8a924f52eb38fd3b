//! Rules for query parameters.

use super::patterns::{MAX_NAMES, Patterns};
use crate::config::presets::Preset;

/// The parameters that change a page, and those that do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRules {
    /// `QUERY_IGNORED`: the page does not depend on them. The origin does not get them with a request for a page.
    pub ignored: Patterns,
    /// `QUERY_KEPT`: exceptions from `QUERY_IGNORED`, and the parameters that pages may have.
    pub kept: Parameters,
}

/// A list such as `page, route=product/product|product/category`: parameters with any value, and parameters with certain ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Those with any value.
    names: Patterns,
    /// The name of a parameter, and its values.
    listed: Vec<(String, Patterns)>,
}

impl QueryRules {
    /// Returns whether the parameter is part of the key.
    #[must_use]
    pub fn is_part_of_key(&self, name: &str) -> bool {
        !self.ignored.contains(name) || self.kept.has(name)
    }

    /// Parses `QUERY_KEPT`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse_kept(text: &str) -> Result<Parameters, String> {
        let kept = Parameters::parse(text)?;
        if kept.listed.iter().any(|(_, values)| values.names().any(|value| value.contains('*'))) {
            return Err("has a value with *: list the values, because each of them is another page".to_owned());
        }
        Ok(kept)
    }
}

impl Parameters {
    /// Parses the list.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut names = String::new();
        let mut listed = Vec::new();
        for entry in text.split(',').map(str::trim) {
            match entry.split_once('=').map(|(name, values)| (name.trim(), values.replace('|', ","))) {
                Some((name, values)) if !name.is_empty() && !name.contains(['*', ' ']) && listed.len() < MAX_NAMES => {
                    let values = Patterns::parse(&values)?;
                    if values.is_empty() {
                        return Err(format!("has {entry:?}, without a value"));
                    }
                    listed.push((name.to_owned(), values));
                }
                Some(_) => {
                    return Err(format!(
                        "has {entry:?}: name a parameter and its values, such as route=product/product"
                    ));
                }
                None => names = format!("{names},{entry}"),
            }
        }
        Ok(Self { names: Patterns::parse(&names)?, listed })
    }

    /// Returns whether the list has no parameter.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty() && self.listed.is_empty()
    }

    /// Returns whether the list has the parameter, with any value or with certain ones.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.allows_any_value(name) || self.listed.iter().any(|(listed, _)| listed == name)
    }

    /// Returns whether the list has the parameter with any value.
    #[must_use]
    pub fn allows_any_value(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns whether the list has this value of the parameter. Listed values are few.
    #[must_use]
    pub fn lists(&self, name: &str, value: &str) -> bool {
        self.listed.iter().any(|(listed, values)| listed == name && values.contains(value))
    }

    /// The entries as they were configured.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let listed =
            |(name, values): &(String, Patterns)| format!("{name}={}", values.names().collect::<Vec<_>>().join("|"));
        let mut entries: Vec<_> = self.names.names().collect();
        entries.extend(self.listed.iter().map(listed));
        entries
    }
}

impl Default for QueryRules {
    fn default() -> Self {
        let default = Preset::DEFAULT.get("QUERY_IGNORED").unwrap_or_default();
        // The default is valid; a test parses it.
        Self { ignored: Patterns::parse(default).unwrap_or_default(), kept: Parameters::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_parameter_can_be_kept() {
        let rules = QueryRules { kept: Parameters::parse("utm_source").unwrap(), ..QueryRules::default() };
        for (name, expected) in [("color", true), ("utm_medium", false), ("utm_source", true), ("gclid", false)] {
            assert_eq!(rules.is_part_of_key(name), expected, "{name}");
        }
    }

    #[test]
    fn a_parameter_can_be_kept_with_some_values_only() {
        let kept = Parameters::parse("page, route=product/product|product/category, lang=en, route=common/*").unwrap();
        for (name, value, expected) in [
            ("route", "product/product", true),
            ("route", "product/category", true),
            ("route", "common/home", true),
            ("route", "checkout/cart", false),
            ("route", "", false),
            ("lang", "product/product", false),
            ("page", "2", false),
        ] {
            assert_eq!(kept.lists(name, value), expected, "{name}={value}");
        }
        assert!(kept.allows_any_value("page") && !kept.allows_any_value("route"));
        assert_eq!(kept.entries()[1], "route=product/product|product/category");
        assert!(QueryRules::parse_kept("route=common/*").is_err());
        for text in ["route=*", "a b", "route=", "=a", "r*=a", "a b=1", "route=|"] {
            assert!(Parameters::parse(text).is_err(), "{text}");
        }
    }
}
