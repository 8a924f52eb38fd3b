//! Hole rules: the parts of shared pages that belong to one visitor.

use super::{entries, paths::PathPatterns};

/// Largest number of rules. Each page is searched for every selector when it is stored.
const MAX_RULES: usize = 20;
/// Longest selector, bytes. Each stored page contains those that match it.
const MAX_SELECTOR: usize = 200;

/// The rules of `HOLES`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoleRules {
    rules: Vec<HoleRule>,
    /// The origin's page that fills holes. One page, so that all holes of a page cost one request.
    page: Option<HolePage>,
}

/// Elements of shared pages that belong to one visitor: `/catalogue/* #mini-basket <- /basket/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoleRule {
    /// The pages that have the hole.
    pub pages: PathPatterns,
    /// A CSS selector.
    pub selector: String,
    pub source: HoleSource,
}

/// The origin's page that fills holes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolePage {
    /// `.`: the page itself, as the visitor sees it.
    Itself,
    /// The page with this path and query, as the visitor sees it.
    Other(String),
}

impl HolePage {
    fn as_str(&self) -> &str {
        match self {
            Self::Itself => ".",
            Self::Other(path) => path,
        }
    }
}

/// The source of a hole's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleSource {
    /// The same element of [`HoleRules::page`].
    Page,
    /// `token`: the same element of the page itself. The browser requests it when the visitor uses a form, or edgefront when the
    /// form is sent.
    Token,
    /// `user`: the id of the signed-in user replaces the element's content.
    User,
    /// `cart`: the number of pieces in the visitor's cart replaces the element's content.
    Cart,
}

impl HoleRules {
    /// Parses rules separated by `;`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut page: Option<HolePage> = None;
        let mut rules = Vec::new();
        for text in entries(text, ';') {
            let (rule, own_page) = HoleRule::parse(text)?;
            match (&page, &own_page) {
                (Some(one), Some(other)) if one != other => {
                    return Err(format!(
                        "fills holes from {} and from {}: choose one page that shows everything",
                        one.as_str(),
                        other.as_str()
                    ));
                }
                _ => page = page.or(own_page),
            }
            rules.push(rule);
        }
        if rules.len() > MAX_RULES { Err(format!("has more than {MAX_RULES} rules")) } else { Ok(Self { rules, page }) }
    }

    /// The rules for the page at `path`.
    pub fn of_path(&self, path: &str) -> impl Iterator<Item = &HoleRule> {
        self.rules.iter().filter(move |rule| rule.pages.contains(path))
    }

    /// The origin's page that fills holes. None: no rule has [`HoleSource::Page`] or [`HoleSource::Token`].
    #[must_use]
    pub const fn page(&self) -> Option<&HolePage> {
        self.page.as_ref()
    }

    /// The selectors of the holes that the page fills. A selector of several rules may be repeated.
    pub fn page_selectors(&self) -> impl Iterator<Item = &str> {
        self.rules
            .iter()
            .filter(|rule| matches!(rule.source, HoleSource::Page | HoleSource::Token))
            .map(|rule| rule.selector.as_str())
    }

    /// Returns whether a hole is a token of the visitor's session.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.rules.iter().any(|rule| rule.source == HoleSource::Token)
    }

    /// Returns whether a rule names the elements of this selector as tokens.
    #[must_use]
    pub fn is_token(&self, selector: &str) -> bool {
        self.rules.iter().any(|rule| rule.source == HoleSource::Token && rule.selector == selector)
    }

    /// Returns whether facts of a session fill a hole.
    #[must_use]
    pub fn has_facts(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.source, HoleSource::User | HoleSource::Cart))
    }

    /// Returns whether the origin or a session fills a hole.
    #[must_use]
    pub fn are_of_visitors(&self) -> bool {
        self.has_facts() || self.page().is_some()
    }

    /// All selectors.
    pub fn selectors(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.selector.as_str())
    }
}

impl HoleRule {
    /// The rule, and the page that fills its holes.
    fn parse(rule: &str) -> Result<(Self, Option<HolePage>), String> {
        let wrong = || format!("has {rule:?}, and a rule must look like /catalogue/* #mini-basket <- /basket/");
        let (pages, rest) = rule.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let (selector, source) = rest.rsplit_once("<-").ok_or_else(wrong)?;
        let (selector, source) = (selector.trim(), source.trim());
        if selector.is_empty() || selector.contains('<') {
            return Err(wrong());
        }
        if selector.len() > MAX_SELECTOR {
            return Err(format!(
                "has a selector of {} characters, and at most {MAX_SELECTOR} are allowed",
                selector.len()
            ));
        }
        let (source, page) = match source {
            "." => (HoleSource::Page, Some(HolePage::Itself)),
            "token" => (HoleSource::Token, Some(HolePage::Itself)),
            "user" => (HoleSource::User, None),
            "cart" => (HoleSource::Cart, None),
            path if path.starts_with('/') && !path.contains(|c: char| c.is_whitespace() || c == '#') => {
                (HoleSource::Page, Some(HolePage::Other(path.to_owned())))
            }
            _ => {
                return Err(format!(
                    "has {rule:?}, and a hole's source is user, cart, token, . for the page itself, or the path of another page, such as /basket/"
                ));
            }
        };
        Ok((Self { pages: PathPatterns::parse(pages)?, selector: selector.to_owned(), source }, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_pages_an_element_and_its_source() {
        let rules = HoleRules::parse(
            "/catalogue/*,/ #mini > .basket <- /basket/?small; /* a[href^='x'] <- user;\n /p/* b <- cart; /p/* i <- /basket/?small;",
        );
        let rules = rules.unwrap();
        let of_path = |path| rules.of_path(path).map(|rule| (rule.selector.as_str(), rule.source)).collect::<Vec<_>>();
        let (basket, user) = (("#mini > .basket", HoleSource::Page), ("a[href^='x']", HoleSource::User));
        assert_eq!(of_path("/catalogue/1"), [basket, user]);
        assert_eq!(of_path("/"), [basket, user]);
        assert_eq!(of_path("/p/1"), [user, ("b", HoleSource::Cart), ("i", HoleSource::Page)]);
        assert_eq!(rules.page(), Some(&HolePage::Other("/basket/?small".to_owned())));
        assert_eq!(HoleRules::parse("/* b <- .").unwrap().page(), Some(&HolePage::Itself));
        let token = HoleRules::parse("/* [name='_token'] <- token; /* b <- .").unwrap();
        assert_eq!((token.page(), token.has_facts()), (Some(&HolePage::Itself), false));
        assert_eq!(token.page_selectors().collect::<Vec<_>>(), ["[name='_token']", "b"]);
        assert_eq!(rules.selectors().count(), 4);
        assert_eq!(HoleRules::parse("").unwrap(), HoleRules::default());
        assert_eq!(HoleRules::parse("/* b <- user").unwrap().page(), None);
    }

    #[test]
    fn malformed_rules_are_refused() {
        for text in [
            "#mini <- /basket/",
            "/* #mini",
            "/* <- /basket/",
            "/* #mini <- basket",
            "/* #mini <- /a b",
            "/* #mini <- /a#b",
            "/* #mini <- ",
            "/* <b <- user",
            "x b <- user",
            "* b <- user",
            "/* a <- /one; /* b <- /two",
            "/* a <- /one; /* b <- .",
            &format!("/* {} <- user", "a".repeat(201)),
            &"/* b <- user;".repeat(21),
        ] {
            assert!(HoleRules::parse(text).is_err(), "{text}");
        }
    }
}
