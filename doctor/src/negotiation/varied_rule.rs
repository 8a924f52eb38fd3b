//! The rule for a cookie that keeps a preference.

use std::fmt::{self, Display, Formatter};

use edgefront::config::rules::{CookieKind, CookieRules, VariedCookie};

/// An entry of `COOKIES_VARIED`; displays as `name=a|b`, with `, name.sig` if the shop signs the value.
pub struct VariedRule {
    pub cookie: VariedCookie,
    pub is_signed: bool,
}

impl VariedRule {
    /// Returns whether a rule names the cookie already.
    pub fn is_known(&self, rules: &CookieRules) -> bool {
        let value = self.cookie.values.first().map_or("", String::as_str);
        rules.kind(&self.cookie.name, value) != CookieKind::Unknown
    }
}

impl Display for VariedRule {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let VariedCookie { name, values } = &self.cookie;
        write!(formatter, "{name}={}", values.join("|"))?;
        if self.is_signed { write!(formatter, ", {name}.sig") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_rule_is_known_by_its_first_value() {
        let cookie = VariedCookie { name: "locale".to_owned(), values: vec!["de".to_owned()] };
        let rule = VariedRule { cookie, is_signed: true };
        assert_eq!(rule.to_string(), "locale=de, locale.sig");
        let varied = CookieRules::parse_varied(&rule.to_string()).unwrap();
        assert!(rule.is_known(&CookieRules { varied, ..CookieRules::default() }));
        assert!(!rule.is_known(&CookieRules::default()));
    }
}
