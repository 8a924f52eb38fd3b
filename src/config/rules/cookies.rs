//! Cookie rules: the pages that a visitor with a cookie may get.

use super::{entries, patterns::Patterns};
use crate::ports::sort;

/// Largest number of rules for varied cookies.
const MAX_RULES: usize = 20;
/// Largest number of rules for dropped cookies: one for each cookie and kind of page.
const MAX_DROPPED: usize = 100;
/// Longest value of a varied cookie without a list of values, bytes.
const MAX_VALUE: usize = 32;
/// Longest value in a list, bytes. A signed value is longer than a plain one.
const MAX_LISTED: usize = 200;

/// The rules for the cookies of the origin. A cookie without a rule is [`CookieKind::Unknown`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CookieRules {
    /// `COOKIES_IGNORED`.
    pub ignored: Patterns,
    /// `COOKIES_PERSONAL`.
    pub personal: Patterns,
    /// `COOKIES_VARIED`, sorted by name.
    pub varied: Vec<VariedCookie>,
    /// `COOKIES_DROPPED`.
    pub dropped: Vec<DroppedCookie>,
    /// `COOKIES_HOLES`.
    pub holes: Patterns,
    /// `CSRF_COOKIE`.
    pub csrf: Option<String>,
}

/// The consequence of a cookie for its visitor, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CookieKind {
    /// Nothing: it changes no page.
    #[default]
    Ignored,
    /// The page is stored once per value.
    Varied,
    /// It changes only the holes of a page. The visitor gets a shared page if the page has holes.
    Hole,
    /// No rule names it, or its value is none that the page may vary on. The visitor gets shared pages only if the
    /// origin declares them shared.
    Unknown,
    /// The visitor never gets a shared page.
    Personal,
}

/// A cookie that selects one of several pages under a URL: `django_language` or `currency=EUR|USD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariedCookie {
    pub name: String,
    /// The allowed values. Empty: any text of at most 32 characters `A-Z a-z 0-9 . _ ~ -`.
    pub values: Vec<String>,
}

/// A `Set-Cookie` that is removed from shared renders: `oscar_history@/catalogue/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedCookie {
    pub name: Patterns,
    pub path: Patterns,
}

impl CookieRules {
    #[must_use]
    pub fn kind(&self, name: &str, value: &str) -> CookieKind {
        if self.personal.contains(name) {
            CookieKind::Personal
        } else if self.holes.contains(name) {
            CookieKind::Hole
        } else if self.csrf.as_deref() == Some(name) {
            // The origin gets the common value, so no value selects a page.
            CookieKind::Ignored
        } else if let Some(varied) = self.varied.iter().find(|varied| varied.name == name) {
            if varied.allows(value) { CookieKind::Varied } else { CookieKind::Unknown }
        } else if self.ignored.contains(name) {
            CookieKind::Ignored
        } else {
            CookieKind::Unknown
        }
    }

    /// Returns whether `COOKIES_VARIED` names the cookie.
    #[must_use]
    pub fn is_varied(&self, name: &str) -> bool {
        self.varied.iter().any(|varied| varied.name == name)
    }

    /// Returns whether shared renders of pages at `path` lose the origin's `Set-Cookie` of this name.
    #[must_use]
    pub fn is_dropped(&self, name: &str, path: &str) -> bool {
        self.csrf.as_deref() == Some(name)
            || self.dropped.iter().any(|rule| rule.name.contains(name) && rule.path.contains(path))
    }

    /// Parses `COOKIES_VARIED`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse_varied(text: &str) -> Result<Vec<VariedCookie>, String> {
        let rules = entries(text, ',');
        let mut rules = rules.map(VariedCookie::parse).collect::<Result<Vec<_>, _>>()?;
        sort::sort_by(&mut rules, |one, other| one.name.cmp(&other.name));
        let repeated = rules.windows(2).find_map(|pair| match pair {
            [one, other] if one.name == other.name => Some(&one.name),
            _ => None,
        });
        match repeated {
            Some(name) => Err(format!("names {name} twice")),
            None if rules.len() > MAX_RULES => Err(format!("names more than {MAX_RULES} cookies")),
            None => Ok(rules),
        }
    }

    /// Parses `COOKIES_DROPPED`.
    ///
    /// # Errors
    /// As [`CookieRules::parse_varied`].
    pub fn parse_dropped(text: &str) -> Result<Vec<DroppedCookie>, String> {
        let rules = entries(text, ',');
        let rules = rules.map(DroppedCookie::parse).collect::<Result<Vec<_>, _>>()?;
        if rules.len() > MAX_DROPPED { Err(format!("has more than {MAX_DROPPED} rules")) } else { Ok(rules) }
    }
}

impl VariedCookie {
    fn parse(rule: &str) -> Result<Self, String> {
        let (name, values) = rule.split_once('=').unwrap_or((rule, ""));
        let values: Vec<_> = values.split('|').filter(|value| !value.is_empty()).map(str::to_owned).collect();
        if !is_cookie_name(name) || !values.iter().all(|value| is_listable(value)) {
            return Err(format!(
                "has {rule:?}, and a rule must look like django_language or currency=EUR|USD, with values of at most {MAX_LISTED} visible ASCII characters"
            ));
        }
        Ok(Self { name: name.to_owned(), values })
    }

    fn allows(&self, value: &str) -> bool {
        if self.values.is_empty() { is_plain(value) } else { self.values.iter().any(|allowed| allowed == value) }
    }
}

impl DroppedCookie {
    fn parse(rule: &str) -> Result<Self, String> {
        let wrong = || format!("has {rule:?}, and a rule must look like oscar_history@/catalogue/*");
        let (name, path) = rule.split_once('@').ok_or_else(wrong)?;
        let (name, path) = (name.trim(), path.trim());
        if name.is_empty() || !path.starts_with('/') {
            return Err(wrong());
        }
        Ok(Self { name: Patterns::parse(name)?, path: Patterns::parse(path)? })
    }
}

/// Returns whether a text is a cookie's name (RFC 6265 §4.1.1: a token).
#[must_use]
pub fn is_cookie_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token_byte)
}

/// Returns whether a token may contain this byte (RFC 9110 §5.6.2).
#[must_use]
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_listable(value: &str) -> bool {
    value.len() <= MAX_LISTED && value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b'"'))
}

fn is_plain(value: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    !value.is_empty() && value.len() <= MAX_VALUE && value.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> CookieRules {
        CookieRules {
            ignored: Patterns::parse("_ga, _ga_*, session_hint").unwrap(),
            personal: Patterns::parse("session*").unwrap(),
            varied: CookieRules::parse_varied(
                "lang, currency=EUR|USD, csrftoken, locale=s%3Ade.9HcW1Cx2OCCNbuNwqspAEw2hUF8ntih8Fo5JOk==",
            )
            .unwrap(),
            dropped: CookieRules::parse_dropped("history@/catalogue/*, seen_*@/p/*").unwrap(),
            holes: Patterns::parse("basket_id, session_hint").unwrap(),
            csrf: Some("csrftoken".to_owned()),
        }
    }

    #[test]
    fn the_strictest_rule_for_a_cookie_wins() {
        for (name, value, expected) in [
            ("_ga", "GA1.2.3", CookieKind::Ignored),
            ("_ga_X", "1", CookieKind::Ignored),
            ("csrftoken", "x", CookieKind::Ignored),
            ("lang", "de", CookieKind::Varied),
            ("lang", "", CookieKind::Unknown),
            ("lang", "de; x", CookieKind::Unknown),
            ("lang", "a-value-of-more-than-thirty-two-characters", CookieKind::Unknown),
            ("currency", "USD", CookieKind::Varied),
            ("currency", "GBP", CookieKind::Unknown),
            ("locale", "s%3Ade.9HcW1Cx2OCCNbuNwqspAEw2hUF8ntih8Fo5JOk==", CookieKind::Varied),
            ("locale", "s%3Ade.9HcW1Cx2OCCNbuNwqspAEw2hUF8ntih8Fo5JOk=", CookieKind::Unknown),
            ("basket", "1", CookieKind::Unknown),
            ("sessionid", "1", CookieKind::Personal),
            ("session_hint", "1", CookieKind::Personal),
            ("basket_id", "1", CookieKind::Hole),
        ] {
            assert_eq!(rules().kind(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn only_named_cookies_are_dropped_and_only_on_their_paths() {
        for (name, path, expected) in [
            ("history", "/catalogue/mug/", true),
            ("history", "/", false),
            ("seen_1", "/p/1", true),
            ("sessionid", "/catalogue/mug/", false),
            ("csrftoken", "/", true),
        ] {
            assert_eq!(rules().is_dropped(name, path), expected, "{name} {path}");
        }
    }

    #[test]
    fn malformed_rules_are_refused() {
        for text in ["a b", "a=b c", "a=b;c", "=x", "lang, lang", "a=ü"] {
            assert!(CookieRules::parse_varied(text).is_err(), "{text}");
        }
        for text in ["history", "@/x", "history@catalogue", "*@/x", "history@*"] {
            assert!(CookieRules::parse_dropped(text).is_err(), "{text}");
        }
    }
}
