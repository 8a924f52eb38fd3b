//! Rules for choices of a language, a currency or the like that the shop keeps in its session.

use url::form_urlencoded;

use super::{Parameters, PathPatterns};

/// Paths, and query parameters with any value or with a certain one, such as `/language/*, ?lang, ?route=common/language/*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    paths: PathPatterns,
    parameters: Parameters,
}

impl Choices {
    /// Parses paths and parameters separated by commas. A parameter begins with `?`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries = || text.split(',').map(str::trim);
        let paths: Vec<_> = entries().filter(|entry| !entry.starts_with('?')).collect();
        let parameters: Vec<_> = entries().filter_map(|entry| entry.strip_prefix('?')).collect();
        if parameters.contains(&"") {
            return Err("has ? without the name of a parameter, such as ?lang".to_owned());
        }
        Ok(Self {
            paths: PathPatterns::parse(&paths.join(","))?,
            parameters: Parameters::parse(&parameters.join(","))?,
        })
    }

    /// Returns whether a request to this path and query makes a choice.
    #[must_use]
    pub fn contains(&self, path: &str, query: Option<&str>) -> bool {
        let chooses =
            |name: &str, value: &str| self.parameters.allows_any_value(name) || self.parameters.lists(name, value);
        let query = query.filter(|_| !self.parameters.is_empty()).unwrap_or_default();
        self.paths.contains(path)
            || form_urlencoded::parse(query.as_bytes()).any(|(name, value)| chooses(&name, &value))
    }

    /// The entries as they were configured.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.paths.names().collect();
        names.extend(self.parameters.entries().iter().map(|entry| format!("?{entry}")));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_has_a_path_or_a_parameter_of_the_list() {
        let choices = Choices::parse("/language/*, ?lang, /Currency, ?route=common/language/*").unwrap();
        for (path, query) in [
            ("/language/de", None),
            ("/LANGUAGE/de", Some("x=1")),
            ("/currency/", None),
            ("/products/mug", Some("a=1&lang=de")),
            ("/", Some("la%6eg")),
            ("/index.php", Some("route=common/language/language")),
        ] {
            assert!(choices.contains(path, query), "{path} {query:?}");
        }
        for (path, query) in [
            ("/languages", None),
            ("/products/mug", Some("slang=de")),
            ("/lang", Some("x=lang")),
            ("/", Some("route=product/product")),
        ] {
            assert!(!choices.contains(path, query), "{path} {query:?}");
        }
        assert_eq!(choices.names(), ["/language/*", "/currency", "?lang", "?route=common/language/*"]);
        assert!(!Choices::default().contains("/", Some("lang=de")));
    }

    #[test]
    fn a_wrong_entry_is_refused() {
        for text in ["?", "language", "/x?lang", "?a;b", "?*", "?a=", "?=a", "?a=*"] {
            assert!(Choices::parse(text).is_err(), "{text}");
        }
    }
}
