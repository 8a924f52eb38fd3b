//! Rules for choices of a language, a currency or the like that the shop keeps in its session.

use url::form_urlencoded;

use super::{PathPatterns, Patterns};

/// Paths, and query parameters with any value or with a certain one, such as `/language/*, ?lang, ?route=common/language/*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    paths: PathPatterns,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: Patterns,
    /// None: any value.
    value: Option<Patterns>,
}

impl Choices {
    /// Parses paths and parameters separated by commas. A parameter begins with `?`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries = || text.split(',').map(str::trim);
        let paths: Vec<_> = entries().filter(|entry| !entry.starts_with('?')).collect();
        let parameters = entries().filter_map(|entry| entry.strip_prefix('?')).map(Parameter::parse);
        Ok(Self { paths: PathPatterns::parse(&paths.join(","))?, parameters: parameters.collect::<Result<_, _>>()? })
    }

    /// Returns whether a request to this path and query makes a choice.
    #[must_use]
    pub fn contains(&self, path: &str, query: Option<&str>) -> bool {
        let pairs = || query.into_iter().flat_map(|query| form_urlencoded::parse(query.as_bytes()));
        self.paths.contains(path)
            || self.parameters.iter().any(|rule| pairs().any(|(name, value)| rule.contains(&name, &value)))
    }

    /// The entries as they were configured.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.paths.names().chain(self.parameters.iter().map(Parameter::to_text))
    }
}

impl Parameter {
    /// Parses `lang` or `route=common/language/*`.
    fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if name.is_empty() || value == Some("") {
            return Err(format!(
                "has \"?{text}\": name a parameter, or one with a value, such as ?lang or ?route=language/*"
            ));
        }
        Ok(Self { name: Patterns::parse(name)?, value: value.map(Patterns::parse).transpose()? })
    }

    fn contains(&self, name: &str, value: &str) -> bool {
        self.name.contains(name) && self.value.as_ref().is_none_or(|values| values.contains(value))
    }

    fn to_text(&self) -> String {
        let value = self.value.iter().flat_map(Patterns::names).map(|value| format!("={value}"));
        ["?".to_owned()].into_iter().chain(self.name.names()).chain(value).collect()
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
        assert_eq!(
            choices.names().collect::<Vec<_>>(),
            ["/language/*", "/currency", "?lang", "?route=common/language/*"]
        );
        assert!(!Choices::default().contains("/", Some("lang=de")));
    }

    #[test]
    fn a_wrong_entry_is_refused() {
        for text in ["?", "language", "/x?lang", "?a;b", "?*", "?a=", "?=a", "?a=*"] {
            assert!(Choices::parse(text).is_err(), "{text}");
        }
    }
}
