//! Query parameters that are not part of a page's key.

use super::patterns::Patterns;
use crate::config::presets::Preset;

/// Which parameters do not change a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRules {
    /// `QUERY_IGNORED`: the page does not depend on them. The origin does not get them with a request for a page.
    pub ignored: Patterns,
    /// `QUERY_KEPT`: exceptions from `QUERY_IGNORED`.
    pub kept: Patterns,
}

impl QueryRules {
    /// Returns whether the parameter is part of the key.
    #[must_use]
    pub fn is_part_of_key(&self, name: &str) -> bool {
        !self.ignored.contains(name) || self.kept.contains(name)
    }
}

impl Default for QueryRules {
    fn default() -> Self {
        let default = Preset::DEFAULT.get("QUERY_IGNORED").unwrap_or_default();
        // The default is valid; a test parses it.
        Self { ignored: Patterns::parse(default).unwrap_or_default(), kept: Patterns::default() }
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
}
